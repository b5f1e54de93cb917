#include "gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/random_access_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kPartBytes = size_t{8} << 20;
// Archives of raw pixels shrink to a tenth; gzip cannot shrink anything below a thousandth.
constexpr uint64_t kMostRatio = 200, kSmall = uint64_t{64} << 20;

}  // namespace

void GzipReader::CloseGzip::operator()(gzFile_s* file) const { gzclose_r(file); }

GzipReader::GzipReader(const std::string& path) : path_(path) {
  OpenForReading(path);  // throws clear errors for what is no readable file
  file_.reset(gzopen(path.c_str(), "rb"));
  if (file_ == nullptr) {
    throw Error(ErrorCode::kIo, {path}, Join("cannot open the file: ", std::strerror(errno)));
  }
  gzbuffer(file_.get(), 1 << 17);
}

size_t GzipReader::Read(void* to, size_t bytes) {
  const int got = gzread(file_.get(), to, static_cast<unsigned>(bytes));
  int code = Z_OK;
  std::string_view text = gzerror(file_.get(), &code);
  if (text.starts_with(path_ + ": ")) text.remove_prefix(path_.size() + 2);
  if (code == Z_ERRNO) {
    throw Error(ErrorCode::kIo, {path_}, Join("cannot read: ", std::strerror(errno)));
  }
  if (code == Z_BUF_ERROR) text = "the file is truncated";
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    throw Error(ErrorCode::kData, {path_}, Join("the gzip file is damaged: ", text));
  }
  return static_cast<size_t>(got);
}

uint64_t GzipReader::packed_bytes() const {
  return static_cast<uint64_t>(std::max<z_off_t>(gzoffset(file_.get()), 0));
}

bool IsGzip(const std::string& path) {
  const RandomAccessFile file(path);
  char head[2];
  return file.Read(0, sizeof head, head) == sizeof head && head[0] == '\x1f' && head[1] == '\x8b';
}

uint64_t UnpackedBytes(const std::string& path) {
  const RandomAccessFile file(path);
  unsigned char end[4];
  if (file.bytes() < sizeof end) return 0;
  if (file.Read(file.bytes() - sizeof end, sizeof end, end) != sizeof end) return 0;
  return uint64_t{end[3]} << 24 | uint64_t{end[2]} << 16 | uint64_t{end[1]} << 8 | end[0];
}

void UnpackGzip(const std::string& from, const std::string& to,
                const std::function<void(uint64_t)>& done) {
  GzipReader file(from);
  std::vector<char> part(kPartBytes);
  AtomicFile copy(to);
  while (const size_t bytes = file.Read(part.data(), part.size())) {
    copy.Append(part.data(), bytes);
    done(bytes);
    if (copy.size() <= kSmall || copy.size() / kMostRatio <= file.packed_bytes()) continue;
    throw Error(ErrorCode::kData, {from},
                Join("the gzip file unpacks to more than ", kMostRatio,
                     " times its size, which is not plausible for an archive of images"));
  }
  copy.Commit();  // reads it back and compares
}

}  // namespace trainer
