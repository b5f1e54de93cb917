#include "cuda/conv/algorithm_file.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/output_file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

constexpr std::string_view kHead = "# trainer: convolution algorithms as measured on GPUs\n";
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

// Returns the CRC-32C of a line in 8 hexadecimal digits.
std::string Checksum(std::string_view rest) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", Crc32c(rest.data(), rest.size()));
  return text;
}

// Returns a line without its checksum if the checksum is correct, otherwise nothing.
std::optional<std::string_view> WholeLine(std::string_view line) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(tab + 1);
  if (line.substr(0, tab) != Checksum(rest)) return std::nullopt;
  return rest;
}

// Returns whether the text is empty or has at least one line of such a file. If not, it may be
// another file of the user's.
bool IsOurs(std::string_view text) {
  if (text.empty() || text.starts_with(kHead)) return true;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    if (WholeLine(text.substr(at, end - at))) return true;
  }
  return false;
}

// Opens a file. Returns -1 and sets errno if it cannot be opened or does not belong to this user.
int OpenWithoutThrowing(const std::string& path, int flags) {
  try {
    return OpenOwnFile(path, flags);
  } catch (const Error&) {
    errno = EINVAL;
    return -1;
  }
}

}  // namespace

AlgorithmFile::AlgorithmFile(std::string path, std::string identity, bool asked)
    : path_(std::move(path)), identity_(std::move(identity)), asked_(asked) {}

void AlgorithmFile::LogUnusable(const std::string& what) {
  if (told_) return;
  told_ = true;
  const std::string line = EscapeControl(
      Join(AbsolutePath(path_), ": ", what, "; convolution algorithms are measured again"));
  if (asked_) {
    LOG(WARNING) << line;
  } else {
    VLOG(1) << line;
  }
}

bool AlgorithmFile::ReadLines(std::string_view text) {
  bool whole = true;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with('#')) continue;
    const auto rest = WholeLine(line);
    if (!rest) {
      whole = false;
      continue;
    }
    const size_t first = rest->find('\t');
    const size_t second = first == rest->npos ? rest->npos : rest->find('\t', first + 1);
    if (second == rest->npos || rest->substr(0, first) != identity_) continue;
    known_[std::string(rest->substr(first + 1, second - first - 1))] = rest->substr(second + 1);
  }
  return whole;
}

// A last line without a newline is being written by another process or was cut off. In the second
// case, the next line that is added makes it a damaged line.
void AlgorithmFile::Refresh() {
  struct stat info {};
  if (path_.empty() || stat(path_.c_str(), &info) != 0) return;
  if (info.st_ino == inode_ && info.st_size == read_) return;
  try {
    const std::string text = ReadFile(path_, kMaxBytes);
    if (!IsOurs(text)) {
      LogUnusable("this is not a file of convolution algorithms, and it is not changed");
      path_.clear();
      return;
    }
    inode_ = info.st_ino;
    read_ = static_cast<long>(text.size());
    if (!ReadLines(text)) RewriteValidLines();
  } catch (const Error& e) {
    LogUnusable(e.what());
    path_.clear();
  }
}

// Rewrites the file with its valid lines. Reads it again first, because other processes may have
// added lines.
void AlgorithmFile::RewriteValidLines() {
  LOG(WARNING) << EscapeControl(Join(AbsolutePath(path_),
                                     ": the file is damaged; its valid part is used, and the other "
                                     "convolution algorithms are measured again"));
  const Turn turn(*this);
  const std::string text = ReadFile(path_, kMaxBytes);
  std::string kept(kHead);
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (WholeLine(line)) kept.append(line) += '\n';
  }
  WriteWhole(path_, kept);
}

std::optional<std::string> AlgorithmFile::Find(const std::string& key) {
  Refresh();
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

// Appends the line with a single write, preceded by a newline if the last line was cut off.
void AlgorithmFile::Add(const std::string& key, const std::string& value) {
  known_[key] = value;
  if (path_.empty()) return;
  const std::string rest = Join(identity_, '\t', key, '\t', value);
  FileHandle file(FileOps::Posix(), OpenWithoutThrowing(path_, O_RDWR | O_CREAT | O_APPEND));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) {
    LogUnusable(Join("cannot be written: ", std::strerror(errno)));
    path_.clear();
    return;
  }
  char last = '\n';
  if (info.st_size > 0 && pread(file.get(), &last, 1, info.st_size - 1) != 1) last = '\n';
  const std::string line = Join(info.st_size == 0 ? kHead
                                : last == '\n'    ? ""
                                                  : "\n",
                                Checksum(rest), '\t', rest, '\n');
  if (write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    LogUnusable(Join("cannot be written: ", std::strerror(errno)));
    path_.clear();
  }
}

AlgorithmFile::Turn::Turn(AlgorithmFile& file) : file_(file), outer_(!file.in_turn_) {
  using namespace std::chrono_literals;
  constexpr std::chrono::milliseconds kPatience = 60s, kPause = 5ms;
  if (file.path_.empty() || !outer_) return;
  file.in_turn_ = true;
  std::error_code ignored;  // Add reports a missing folder
  std::filesystem::create_directories(FolderOf(file.path_), ignored);
  lock_ = OpenWithoutThrowing(file.path_ + ".lock", O_RDWR | O_CREAT);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(kPause);
  }
}

AlgorithmFile::Turn::~Turn() {
  if (outer_) file_.in_turn_ = false;
  if (lock_ >= 0) close(lock_);
}

}  // namespace trainer::cuda
