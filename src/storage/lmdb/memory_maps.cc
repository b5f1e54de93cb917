#include "lmdb/memory_maps.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

namespace trainer {
namespace {

// Takes a number and the character after it off the front of the line.
template <class T>
bool TakeHex(const char** line, char behind, T* number) {
  const auto [stop, error] = std::from_chars(*line, *line + std::strlen(*line), *number, 16);
  *line = stop + 1;
  return error == std::errc() && *stop == behind;
}

bool SkipWord(const char** line) {
  *line = std::strchr(*line, ' ');
  while (*line != nullptr && **line == ' ') ++*line;
  return *line != nullptr;
}

// A line: "start-end permissions offset device inode path".
bool Parse(const char* line, MemoryMap* map) {
  if (!TakeHex(&line, '-', &map->start) || !TakeHex(&line, ' ', &map->end) || !SkipWord(&line) ||
      !TakeHex(&line, ' ', &map->offset) || !SkipWord(&line)) {
    return false;
  }
  map->file = SkipWord(&line) ? line : "";
  return true;
}

}  // namespace

MemoryMaps::MemoryMaps() : file_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}

MemoryMaps::~MemoryMaps() {
  if (file_ >= 0) close(file_);
}

bool MemoryMaps::Next(MemoryMap* map) {
  for (;;) {
    char* const line = text_ + line_;
    auto* const end = static_cast<char*>(std::memchr(line, '\n', end_ - line_));
    if (end != nullptr) {
      *end = '\0';
      line_ = static_cast<size_t>(end + 1 - text_);
      if (Parse(line, map)) return true;
      continue;
    }
    end_ -= line_;
    std::memmove(text_, line, end_);
    line_ = 0;
    const ssize_t got = read(file_, text_ + end_, sizeof text_ - end_);
    if (got <= 0) return false;
    end_ += static_cast<size_t>(got);
  }
}

}  // namespace trainer
