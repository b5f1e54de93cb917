#pragma once
// Where files lie: on a disk of this machine, in its memory, or behind a network.

#include <cstdint>
#include <string>
#include <string_view>

namespace trainer {

enum class FileSystemKind { kLocal, kMemory, kNetwork, kUnknown };

struct FileSystem {
  FileSystemKind kind = FileSystemKind::kUnknown;
  std::string name;  // "Lustre", "NFS", "ext4", "tmpfs"; a number for one that is not known
};

// Of the magic number that statfs gives as f_type.
FileSystem FileSystemOf(uint64_t magic);

// Of a file or folder, or of the folder above it where it is not there. Unknown where the system
// does not say.
FileSystem FileSystemAt(const std::string& path);

// Over how many servers Lustre spreads a file: its stripes. 0 where it is not known, or where
// the file has several layouts one after the other; asks the file's attribute lustre.lov, else the
// command lfs.
int LustreStripes(const std::string& path);

// The same of the attribute's bytes.
int ParseLustreLayout(std::string_view layout);

}  // namespace trainer
