#include "gzip_reader.h"

#include <fcntl.h>
#include <zlib.h>

#include <cerrno>
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

class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {
    constexpr int kGzip = 16;  // the stream's head and end are gzip's
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Unpacks some bytes into `part` as often as it gets full; take(bytes) each time.
  void Unpack(std::vector<char>* read, size_t count, std::vector<char>* part,
              const std::function<void(size_t)>& take) {
    stream_.next_in = reinterpret_cast<Bytef*>(read->data());
    stream_.avail_in = static_cast<uInt>(count);
    do {
      if (ended_ && inflateReset(&stream_) != Z_OK) Fail();
      stream_.next_out = reinterpret_cast<Bytef*>(part->data());
      stream_.avail_out = static_cast<uInt>(part->size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) Fail();
      ended_ = result == Z_STREAM_END;
      take(part->size() - stream_.avail_out);
    } while (stream_.avail_in > 0 || (!ended_ && stream_.avail_out == 0));
  }

  // At the end of the file.
  void CheckEnd() const {
    if (!ended_) Fail("the file is truncated");
  }

 private:
  [[noreturn]] void Fail() const {
    Fail(stream_.msg != nullptr ? stream_.msg : "it cannot be unpacked");
  }
  [[noreturn]] void Fail(const std::string& why) const {
    throw Error(ErrorCode::kData, {path_}, Join("the gzip file is damaged: ", why));
  }

  const std::string& path_;
  z_stream stream_{};
  bool ended_ = false;  // a piece is, and nothing of the next one was read
};

}  // namespace

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
  const FileHandle file = OpenForReading(from);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<char> packed(kPartBytes), part(kPartBytes);
  Inflater inflater(from);
  AtomicFile copy(to);
  uint64_t all = 0;
  for (;;) {
    const ssize_t got = FileOps::Posix().Read(file.get(), packed.data(), packed.size());
    if (got < 0) ThrowFileError(FileUse::kInput, "read", from, errno);
    if (got == 0) break;
    all += static_cast<uint64_t>(got);
    inflater.Unpack(&packed, static_cast<size_t>(got), &part, [&](size_t bytes) {
      copy.Append(part.data(), bytes);
      done(bytes);
      if (copy.size() <= kSmall || copy.size() / kMostRatio <= all) return;
      throw Error(ErrorCode::kData, {from},
                  Join("the gzip file unpacks to more than ", kMostRatio,
                       " times its size, which is not plausible for an archive of images"));
    });
  }
  inflater.CheckEnd();
  copy.Commit();  // reads it back and compares
}

}  // namespace trainer
