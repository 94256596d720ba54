// Folders and files as whole things: made, put aside, tidied. Errors name the path.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fathom {

/// Makes the folder and those above it where they are missing; DataError when that fails.
void make_folder(const std::filesystem::path& path);

/// Renames what cannot be used to NAME.broken, or NAME.broken.2 and so on: nothing is overwritten
/// before a person has looked at it. The new name; DataError when it cannot be renamed.
std::filesystem::path put_aside(const std::filesystem::path& path);

/// Removes the temporary files that killed writers of these files left next to them
/// (core/atomic_file.h): those whose process, given in their name, no longer exists. On a file
/// system shared by several machines, call it only while holding the folder's lock: a writer
/// elsewhere looks like one that is gone.
void remove_leftovers(const std::vector<std::filesystem::path>& files);
/// The same of all files in a folder of ours.
void remove_leftovers_in(const std::filesystem::path& folder);

/// A new folder NAME-xxxxxx for temporary files; DataError where TMPDIR cannot hold one.
std::filesystem::path make_temporary_folder(const std::string& name);

}  // namespace fathom
