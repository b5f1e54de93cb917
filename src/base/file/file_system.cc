#include "trainer/base/file/file_system.h"

#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>

#include "trainer/base/file/file.h"
#include "trainer/base/process/command.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

struct Known {
  uint64_t magic;
  const char* name;
  FileSystemKind kind;
};

// The numbers come from linux/magic.h and from the documentation of file systems outside the
// kernel.
constexpr std::array kKnown = {
    Known{0x0BD00BD0, "Lustre", FileSystemKind::kNetwork},
    Known{0x6969, "NFS", FileSystemKind::kNetwork},
    Known{0x47504653, "GPFS", FileSystemKind::kNetwork},
    Known{0x19830326, "BeeGFS", FileSystemKind::kNetwork},
    Known{0x00C36400, "CephFS", FileSystemKind::kNetwork},
    Known{0xAAD7AAEA, "PanFS", FileSystemKind::kNetwork},
    Known{0x7461636F, "OCFS2", FileSystemKind::kNetwork},
    Known{0x01161970, "GFS2", FileSystemKind::kNetwork},
    Known{0x20030528, "OrangeFS", FileSystemKind::kNetwork},
    Known{0xFF534D42, "CIFS", FileSystemKind::kNetwork},
    Known{0xFE534D42, "SMB", FileSystemKind::kNetwork},
    Known{0x5346414F, "AFS", FileSystemKind::kNetwork},
    Known{0x01021997, "9p", FileSystemKind::kNetwork},
    Known{0x65735546, "FUSE", FileSystemKind::kUnknown},  // a disk's or a network's
    Known{0x01021994, "tmpfs", FileSystemKind::kMemory},
    Known{0x858458F6, "ramfs", FileSystemKind::kMemory},
    Known{0xEF53, "ext4", FileSystemKind::kLocal},
    Known{0x58465342, "XFS", FileSystemKind::kLocal},
    Known{0x9123683E, "Btrfs", FileSystemKind::kLocal},
    Known{0x2FC12FC1, "ZFS", FileSystemKind::kLocal},
    Known{0xF2F52010, "F2FS", FileSystemKind::kLocal},
    Known{0xCA451A4E, "bcachefs", FileSystemKind::kLocal},
    Known{0x794C7630, "overlay", FileSystemKind::kLocal},
};

// The beginning of lustre.lov, in the byte order of the machine.
struct LustreLayout {
  uint32_t magic, pattern;
  char object[16];
  uint32_t stripe_bytes;
  uint16_t stripes, first;
};

}  // namespace

FileSystem FileSystemOf(uint64_t magic) {
  const auto found = std::ranges::find(kKnown, magic, &Known::magic);
  if (found == kKnown.end()) return {FileSystemKind::kUnknown, Join("type 0x", std::hex, magic)};
  return {found->kind, found->name};
}

FileSystem FileSystemAt(const std::string& path) {
  struct statfs facts {};
  for (std::string at = AbsolutePath(path);; at = FolderOf(at)) {
    // f_type is a signed word; only its lower 32 bits count.
    if (statfs(at.c_str(), &facts) == 0) return FileSystemOf(static_cast<uint32_t>(facts.f_type));
    if (at == FolderOf(at)) return {};
  }
}

int ParseLustreLayout(std::string_view layout) {
  LustreLayout head;
  if (layout.size() < sizeof head) return 0;
  std::memcpy(&head, layout.data(), sizeof head);
  constexpr uint32_t kPlain = 0x0BD10BD0, kOfPool = 0x0BD30BD0;
  return head.magic == kPlain || head.magic == kOfPool ? head.stripes : 0;
}

int LustreStripes(const std::string& path) {
  std::array<char, 65536> layout;
  const ssize_t bytes = getxattr(path.c_str(), "lustre.lov", layout.data(), layout.size());
  if (bytes > 0) return ParseLustreLayout({layout.data(), static_cast<size_t>(bytes)});
  const CommandResult asked = RunCommand({"lfs", "getstripe", "-c", path}, std::chrono::seconds(5));
  int stripes = 0;
  if (asked.exit_code == 0) {
    std::from_chars(asked.out.data(), asked.out.data() + asked.out.size(), stripes);
  }
  return std::max(stripes, 0);
}

}  // namespace trainer
