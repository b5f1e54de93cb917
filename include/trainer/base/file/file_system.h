#pragma once
// Finds where files are stored: on a disk of this machine, in its memory, or on a network.

#include <cstdint>
#include <string>
#include <string_view>

namespace trainer {

enum class FileSystemKind { kLocal, kMemory, kNetwork, kUnknown };

struct FileSystem {
  FileSystemKind kind = FileSystemKind::kUnknown;
  std::string name;  // "Lustre", "NFS", "ext4", "tmpfs"; a number for one that is not known
};

// Returns the file system for the magic number that statfs reports as f_type.
FileSystem FileSystemOf(uint64_t magic);

// Returns the file system of a file or folder, or of the nearest folder above it that exists. The
// kind is kUnknown if the system does not report it.
FileSystem FileSystemAt(const std::string& path);

// Returns the stripe count of a file, i.e. over how many servers Lustre spreads it. Returns 0 if it
// is not known, or if the file has several layouts one after the other. Reads the file's attribute
// lustre.lov, and runs the command lfs if that fails.
int LustreStripes(const std::string& path);

// Returns the stripe count from the bytes of the attribute lustre.lov. Returns 0 if they are too
// few, or are not one plain layout.
int ParseLustreLayout(std::string_view layout);

}  // namespace trainer
