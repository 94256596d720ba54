#include "data/corpus.h"

#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "data/byte_source.h"
#include "sample_text.h"
#include "scratch_folder.h"

namespace fathom::data {
namespace {

/// Documents of a corpus, joined from their pieces.
std::vector<std::string> documents(const std::vector<CorpusSource>& sources, DocumentRule rule) {
  CorpusReader reader(sources, std::move(rule));
  std::vector<std::string> texts;
  bool inside = false;
  for (Piece piece; reader.next(piece);) {
    EXPECT_EQ(piece.begins_document, !inside);
    EXPECT_FALSE(piece.text.empty());
    EXPECT_LE(piece.text.size(), std::size_t{1} << 20);
    if (piece.begins_document) texts.emplace_back();
    texts.back() += piece.text;
    inside = !piece.ends_document;
  }
  EXPECT_FALSE(inside);
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

using Texts = std::vector<std::string>;

TEST(Corpus, TitlesBeginDocumentsAfterABlankLine) {
  const ScratchFolder folder;
  const std::string text =
      "= One =\nbody\n= not a title, no blank line before =\n== Section ==\n\n"
      "= = Section = =\nmore\n\n= Two =\r\n\r\nbody\n";
  const auto path = folder.write("a.txt", text);
  const Texts found = documents({{path, {}, ""}}, {});  // auto: the first line is a title
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1], "= Two =\r\n\r\nbody\n");
  EXPECT_EQ(joined(found), text);
}

TEST(Corpus, OtherRules) {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", "a\nb\n\n\nc\n---\nd");
  const auto cut = [&](DocumentKind kind, const std::string& separator = "") {
    return documents({{path, {}, ""}}, {kind, separator});
  };
  EXPECT_EQ(cut(DocumentKind::file), (Texts{"a\nb\n\n\nc\n---\nd"}));
  EXPECT_EQ(cut(DocumentKind::paragraphs), (Texts{"a\nb\n\n\n", "c\n---\nd"}));
  EXPECT_EQ(cut(DocumentKind::lines), (Texts{"a\n", "b\n", "\n", "\n", "c\n", "---\n", "d"}));
  EXPECT_EQ(cut(DocumentKind::separator, "---"), (Texts{"a\nb\n\n\nc\n", "d"}));
  EXPECT_EQ(cut(DocumentKind::blocks), (Texts{"a\nb\n\n\nc\n---\nd"}));
  const auto edges = folder.write("b.txt", "---\n---\nx\n---\r\n---");
  EXPECT_EQ(documents({{edges, {}, ""}}, {DocumentKind::separator, "---"}), (Texts{"x\n"}));
}

TEST(Corpus, BlocksAreWholeLinesAndPartitionTheText) {
  const ScratchFolder folder;
  const std::string text = sample_text(30000, 1);
  const Texts found = documents({{folder.write("a", text), {}, ""}}, {});
  EXPECT_EQ(joined(found), text);
  ASSERT_GT(found.size(), 5u);
  for (std::size_t i = 0; i + 1 < found.size(); ++i) {
    EXPECT_GE(found[i].size(), 16u << 10);
    EXPECT_TRUE(found[i].ends_with('\n'));
  }
}

TEST(Corpus, GiantLinesComeInPiecesAtBlanksOrCharacters) {
  const ScratchFolder folder;
  std::string blanks = sample_text(100000, 2);
  for (char& c : blanks) c = c == '\n' ? ' ' : c;
  std::string solid;
  for (int i = 0; i < 700000; ++i) solid += "\u20ac";  // three bytes each, no blank: 2.1 MB
  for (const std::string& text : {blanks, solid, solid + "\n" + blanks}) {
    const auto path = folder.write("a", text);
    EXPECT_EQ(joined(documents({{path, {}, ""}}, {DocumentKind::file, ""})), text);
    EXPECT_EQ(joined(documents({{path, {}, ""}}, {DocumentKind::blocks, ""})), text);
    CorpusReader reader({{path, {}, ""}}, {DocumentKind::file, ""});
    for (Piece piece; reader.next(piece);) {
      EXPECT_NE(static_cast<unsigned char>(piece.text[0]) & 0xC0, 0x80);
      EXPECT_EQ(text.substr(piece.offset, piece.text.size()), piece.text);
    }
  }
}

TEST(Corpus, FoldersAreReadInOrderOfPathWithoutHiddenFiles) {
  const ScratchFolder folder;
  folder.write("c/b.txt", "2");
  folder.write("c/a/z.txt", "1");
  folder.write("c/c.txt", "3\n\n= T =\n");
  folder.write("c/empty.txt", "");
  folder.write("c/.hidden", "x");
  folder.write("c/.git/config", "x");
  EXPECT_EQ(documents({{folder / "c", {}, ""}}, {}), (Texts{"1", "2", "3\n\n= T =\n"}));
  std::filesystem::create_directories(folder / "none");
  EXPECT_EQ(error_of<DataError>([&] {
              CorpusReader({{folder / "none", {}, ""}}, {});
            }),
            (folder / "none").string() + ": this folder holds no file");
  EXPECT_THROW(CorpusReader({{folder / "missing", {}, ""}}, {}), DataError);
  EXPECT_TRUE(documents({{folder / "c/empty.txt", {}, ""}}, {}).empty());
}

TEST(Corpus, JsonLinesAreDocuments) {
  const ScratchFolder folder;
  // Longer than a fragment of a line and than a piece, with spaces where lines are cut.
  std::string large;
  while (large.size() < (3u << 20)) large += "word and word ";
  const auto path = folder.write("a.jsonl", R"({"id": 1, "text": "one\nline \u00e9"})"
                                            "\n\n"
                                            R"({"text": "", "id": 2})"
                                            "\r\n{\"text\": \"" +
                                                large + "\"}");
  const Texts expected{"one\nline \u00e9", large};
  EXPECT_EQ(documents({{path, {}, ""}}, {}), expected);  // by content
  EXPECT_EQ(documents({{folder.path(), {}, ""}}, {}), expected);
  const auto named = folder.write("n/b.txt", R"({"body": "b"})");
  EXPECT_EQ(documents({{named, {}, ""}}, {.text_field = "body"}), Texts{"b"});
  EXPECT_EQ(documents({{path, {}, ""}}, {DocumentKind::lines, ""}).size(), 4u);
  EXPECT_EQ(documents({{folder.write("b/c.txt", "{\n\"text\": \"a\"}"), {}, ""}}, {}).size(), 1u);
  const auto error_with = [&](const std::string& line) {
    const auto bad = folder.write("bad.jsonl", "{\"text\": \"a\"}\n" + line);
    return error_of<DataError>([&] { documents({{bad, {}, ""}}, {}); });
  };
  EXPECT_NE(error_with("{\"text\": ").find("bad.jsonl: line 2 is not a JSON object"),
            std::string::npos);
  EXPECT_NE(error_with("{\"text\": 3, \"body\": \"b\"}").find("it has: body"), std::string::npos);
  // Told by the name: a field that is missing is an error, not a text of braces.
  for (const char* name : {"x/c.jsonl", "x/c.ndjson", "x/c.jsonl.zst"}) {
    const auto path_of_other = folder.write(name, R"({"body": "b"})");
    EXPECT_THROW(documents({{path_of_other, {}, ""}}, {}), DataError) << name;
  }
}

std::string pack_zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string pack_xz(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr,
                          reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                          reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size());
  packed.resize(size);
  return packed;
}

std::string pack_gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string read_all(const std::filesystem::path& path, std::size_t step) {
  const auto source = open_byte_source(path);
  std::string all;
  std::vector<char> buffer(step);
  while (const std::size_t count = source->read(buffer)) all.append(buffer.data(), count);
  EXPECT_EQ(source->consumed(), std::filesystem::file_size(path));
  return all;
}

TEST(ByteSource, UnpacksByContentAlsoConcatenated) {
  const ScratchFolder folder;
  const std::string text = sample_text(200000, 4);  // well beyond every buffer
  for (const std::size_t step : {7u, 4096u, 1u << 20}) {
    EXPECT_EQ(read_all(folder.write("plain", text), step), text);
    EXPECT_EQ(read_all(folder.write("z", pack_zstd(text)), step), text);
    EXPECT_EQ(read_all(folder.write("x", pack_xz(text)), step), text);
    EXPECT_EQ(read_all(folder.write("g", pack_gzip(text)), step), text);
  }
  EXPECT_EQ(read_all(folder.write("g", pack_gzip("a") + pack_gzip("b")), 10), "ab");
  EXPECT_EQ(read_all(folder.write("g", pack_gzip("")), 10), "");
  EXPECT_EQ(read_all(folder.write("z", pack_zstd("a") + pack_zstd("b")), 10), "ab");
  EXPECT_EQ(read_all(folder.write("x", pack_xz("a") + pack_xz("b")), 10), "ab");
  EXPECT_EQ(read_all(folder.write("e", ""), 10), "");
  EXPECT_EQ(read_all(folder.write("z", pack_zstd("")), 10), "");
}

TEST(ByteSource, DamagedAndForeignFilesAreOneDataErrorEach) {
  const ScratchFolder folder;
  const std::string text = sample_text(5000, 4);
  const auto error_with = [&](const std::string& bytes) {
    const auto path = folder.write("x", bytes);
    return error_of<DataError>([&] { read_all(path, 1000); });
  };
  for (const std::string& packed : {pack_zstd(text), pack_xz(text), pack_gzip(text)}) {
    EXPECT_NE(error_with(packed.substr(0, packed.size() / 2)).find("ends early"),
              std::string::npos);
    std::string flipped = packed;
    flipped[packed.size() / 2] ^= 0x55;
    flipped[packed.size() / 2 + 1] ^= 0x55;
    EXPECT_NE(error_with(flipped), "");
  }
  EXPECT_NE(error_with("\x1f\x8b\x08 gzip").find("damaged"), std::string::npos);
  EXPECT_NE(error_with("PK\x03\x04 zip").find("unzip -p"), std::string::npos);
  EXPECT_THROW(open_byte_source(folder.path()), DataError);
  EXPECT_THROW(open_byte_source(folder / "missing"), DataError);
}

TEST(ByteSource, APipeIsReadToItsEndAndNotWaitedForWithoutAWriter) {
  const ScratchFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of<DataError>([&] { open_byte_source(pipe); }),
            pipe.string() + ": a pipe that nobody writes to");
  const std::string text = sample_text(20000, 4);
  std::thread writer([&] {
    std::ofstream stream(pipe);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // there, but slow
    stream << pack_gzip(text);
  });
  const auto source = open_byte_source(pipe);
  std::string all;
  std::vector<char> buffer(1000);
  while (const std::size_t count = source->read(buffer)) all.append(buffer.data(), count);
  writer.join();
  EXPECT_EQ(all, text);
}

TEST(Split, SaysHowManyDocumentsAShareTakes) {
  EXPECT_EQ(documents_for_share(0.05), 60);
  EXPECT_LT(std::pow(1 - 0.05, 60), 0.05);
  EXPECT_EQ(documents_for_share(0.3), 10);
}

TEST(Split, DependsOnTheTextAloneAndKeepsItsShares) {
  const SplitRule rule{0.1, 0.2, 7};
  int counts[3] = {0, 0, 0};
  for (int i = 0; i < 20000; ++i) {
    ++counts[static_cast<int>(split_of("document " + std::to_string(i), rule))];
  }
  EXPECT_NEAR(counts[1], 2000, 200);  // 4.7 standard deviations
  EXPECT_NEAR(counts[2], 4000, 270);
  const std::string head(kSplitHeadBytes, 'x');
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SplitRule other{0.3, 0.3, seed};
    EXPECT_EQ(split_of(head + "one tail", other), split_of(head + "another", other));
  }
  EXPECT_THROW(check({0.5, 0.5, 0}), ConfigError);
  EXPECT_THROW(check({-0.1, 0.5, 0}), ConfigError);
}

}  // namespace
}  // namespace fathom::data
