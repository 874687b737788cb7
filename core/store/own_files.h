// SPDX-License-Identifier: Apache-2.0
//
// What this program has written into a directory, and how that is removed and nothing else. Names
// are looked at through the open directory and never through a symbolic link. A folder of data
// files is the program's own by a mark in it, which names the folder: a copy of it under another
// name is somebody's. What cannot be removed stays, and that is told once.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace orrery {

// Makes the folder `name` in a directory, with its mark, and returns when both are on the disk. No
// crash leaves it without the mark. Throws Error.
void make_marked_folder(const std::string& directory, const std::string& name);

class OwnFiles {
 public:
  // Opens the directory. Throws Error, beginning with `label`, if that is none, or a link.
  OwnFiles(const std::string& directory, const std::string& label);
  ~OwnFiles();
  OwnFiles(const OwnFiles&) = delete;

  std::vector<std::string> names() const;
  // Whether that is a folder of make_marked_folder, or what one that was being made has left.
  bool is_own_folder(const std::string& name) const;
  bool is_link(const std::string& name) const;

  // All of these return whether anything was removed.
  // Removes a name that is no directory. A link goes, and what it leads to stays.
  bool remove_file(const std::string& name) const;
  // Removes the data files in a folder of the program's own, and the folder, if nothing else is in
  // it.
  bool remove_own_folder(const std::string& name) const;
  // The same for a folder without a mark, as older releases made them, of which a manifest names
  // the files.
  bool remove_folder(const std::string& name, const std::set<std::string>& files) const;
  // Removes a directory that is empty.
  bool remove_directory(const std::string& name) const;
  // Tells why something stays, and returns false.
  bool stays(const std::string& name, const std::string& why) const;

 private:
  class Folder;
  bool empty(const Folder& folder, const std::set<std::string>* files) const;

  std::string path_, label_;
  int fd_;
};

}  // namespace orrery
