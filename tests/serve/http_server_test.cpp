// The site behind a socket.
#include "serve/http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include "core/error.h"
#include "scratch_folder.h"

namespace fathom::serve {
namespace {

struct Served {
  ScratchFolder folder;
  Site site{{.roots = {folder.path()}, .parse_plan = {}, .fit_command = {"/bin/false"}}};
};

TEST(HttpServer, AnswersOnAnyFreePortAndEnds) {
  Served served;
  HttpServer server(served.site, 0);
  ASSERT_GT(server.port(), 0);
  httplib::Client client("127.0.0.1", server.port());
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page->get_header_value("Cache-Control"), "no-store");
  const auto head = client.Head("/");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_TRUE(head->body.empty());
  const auto post = client.Post("/", "x=1", "application/x-www-form-urlencoded");
  ASSERT_TRUE(post);
  EXPECT_EQ(post->status, 405);
  const auto other = client.Get("/", {{"Host", "evil.example"}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 403);
  for (const char* path : {"/..%2f..%2fetc/passwd", "/study/%2e%2e/%2e%2e/etc/passwd"}) {
    const auto escape = client.Get(path);
    ASSERT_TRUE(escape);
    EXPECT_EQ(escape->status, 404) << path;
  }
  server.stop();
  EXPECT_FALSE(client.Get("/"));
}

TEST(HttpServer, SaysWhenThePortIsTaken) {
  Served served;
  const HttpServer first(served.site, 0);
  try {
    const HttpServer second(served.site, first.port());
    FAIL() << "two servers on one port";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(first.port())), std::string::npos);
  }
}

}  // namespace
}  // namespace fathom::serve
