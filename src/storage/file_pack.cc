#include "trainer/storage/file_pack.h"

#include <cstring>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file_ops.h"

namespace trainer {
namespace {

constexpr char kFiles[] = "files", kIndex[] = "index";
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 34;

}  // namespace

FilePack::FilePack(const std::string& folder) : file_(JoinPath(folder, kFiles)) {
  const std::string index = ReadFile(JoinPath(folder, kIndex), kMaxIndexBytes);
  ends_.resize(index.size() / sizeof(uint64_t));
  std::memcpy(ends_.data(), index.data(), ends_.size() * sizeof(uint64_t));
  if (index.size() % sizeof(uint64_t) != 0 || ends_.empty() || ends_.back() != file_.bytes()) {
    throw Error(ErrorCode::kData, {folder}, "is not a complete pack of files");
  }
}

void FilePack::Read(size_t i, std::string* bytes) const {
  const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
  bytes->resize(static_cast<size_t>(ends_[i] - begin));
  if (file_.Read(begin, bytes->size(), bytes->data()) == bytes->size()) return;
  throw Error(ErrorCode::kData, {file_.path()}, "became shorter while it was read");
}

void WriteFilePack(const std::vector<std::string>& files, const std::string& folder,
                   const std::function<void(uint64_t bytes)>& done) {
  AtomicFile pack(JoinPath(folder, kFiles));
  std::string index;
  uint64_t end = 0;
  for (const std::string& file : files) {
    const std::string bytes = ReadFile(file, kMaxFileBytes);
    pack.Append(bytes.data(), bytes.size());
    end += bytes.size();
    index.append(reinterpret_cast<const char*>(&end), sizeof end);
    done(bytes.size());
  }
  pack.Commit();
  WriteWhole(JoinPath(folder, kIndex), index);
}

bool IsWholePack(const std::string& folder) {
  try {
    const FilePack pack(folder);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace trainer
