#include "checksummed_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <exception>

#include "checksum_bytes.h"
#include "hdf5_files.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

namespace io = google::protobuf::io;

constexpr uint64_t kSealedFileMaxBytes = INT_MAX;  // protobuf's limit for one message
constexpr size_t kTagBytes = 3;
constexpr size_t kHeadBytes = kTagBytes + 8;
constexpr size_t kTailBytes = kTagBytes + 4;
constexpr int kBlockBytes = 1 << 18;

// Returns a field's tag on the wire: (number, wire type) as a varint of three bytes.
std::string Tag(uint32_t number, uint32_t wire_type) {
  const uint32_t tag = number << 3 | wire_type;
  return {static_cast<char>((tag & 0x7f) | 0x80), static_cast<char>((tag >> 7 & 0x7f) | 0x80),
          static_cast<char>(tag >> 14)};
}
// Returns the tag of file_bytes, with which a file of this program begins.
std::string HeadTag() { return Tag(caffe::NetParameter::kFileBytesFieldNumber, 1); }
// Returns the tag of crc32c, which precedes the last four bytes of a file of this program.
std::string TailTag() { return Tag(caffe::NetParameter::kCrc32CFieldNumber, 5); }

// Passes the output of protobuf to an AtomicFile. protobuf must not see exceptions, so it sees a
// failed write, and the caller calls Rethrow() afterwards.
class FileSink : public io::CopyingOutputStream {
 public:
  explicit FileSink(AtomicFile* file) : file_(file) {}

  // Returns false instead of throwing, and keeps the exception for Rethrow.
  bool Write(const void* data, int bytes) override try {
    file_->Append(data, static_cast<size_t>(bytes));
    return true;
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }

  // Throws the exception that Write has kept, if there is one.
  void Rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  AtomicFile* file_;
  std::exception_ptr failure_;
};

// Returns how many bits of the first bytes differ from the tag of a sealed file; bytes that are
// missing because the file was truncated count as equal.
int BitsOffHead(const std::string& head) {
  const std::string tag = HeadTag();
  int bits = 0;
  for (size_t i = 0; i < std::min(head.size(), kTagBytes); ++i) {
    bits += std::popcount(static_cast<unsigned char>(head[i] ^ tag[i]));
  }
  return bits;
}

// Returns the checksum of a file that begins, up to a flipped bit, like a file of this program.
// Throws kBadSnapshot if its size or its bytes are not as recorded.
FileChecksum CheckSealed(const FileHandle& file, const std::string& path, uint64_t size,
                         const std::string& head, const std::string& tail) {
  if (size < kHeadBytes + kTailBytes) {
    ThrowDamaged(path, Join("the file is truncated: it has only ", size, " bytes"));
  }
  const uint64_t stated = FromLittleEndian(std::string_view(head).substr(kTagBytes, 8));
  if (BitsOffHead(head) == 0 && stated > size && stated <= kSealedFileMaxBytes) {
    ThrowDamaged(path, Join("the file is truncated: it has ", size, " of ", stated, " bytes"));
  }
  const FileChecksum seal{
      static_cast<uint32_t>(FromLittleEndian(std::string_view(tail).substr(kTagBytes))), size};
  if (stated != size || !tail.starts_with(TailTag()) ||
      ChecksumOf(file, path, 0, size - kTailBytes) != seal.crc32c) {
    ThrowDamaged(
        path, "its checksum does not match: the file was changed or damaged after it was written");
  }
  return seal;
}

// Skips the rest of a field. Returns false at the end of the file or for bytes that cannot occur in
// a message.
bool SkipValue(io::CodedInputStream* in, uint32_t wire_type) {
  uint64_t number = 0;
  uint32_t length = 0;
  switch (wire_type) {
    case 0:
      return in->ReadVarint64(&number);
    case 1:
      return in->Skip(8);
    case 2:
      return in->ReadVarint32(&length) && length <= kSealedFileMaxBytes &&
             in->Skip(static_cast<int>(length));
    case 5:
      return in->Skip(4);
    default:
      return false;
  }
}

}  // namespace

FileChecksum WriteChecksummed(const google::protobuf::Message& message, AtomicFile* file) {
  FileChecksum seal;
  seal.file_bytes = message.ByteSizeLong() + kHeadBytes + kTailBytes;
  CheckModelBytes(seal.file_bytes);
  const std::string head = HeadTag() + LittleEndian(seal.file_bytes, 8);
  file->Append(head.data(), head.size());
  FileSink sink(file);
  bool complete = false;
  {
    io::CopyingOutputStreamAdaptor stream(&sink, kBlockBytes);
    complete = message.SerializePartialToZeroCopyStream(&stream) && stream.Flush();
  }
  sink.Rethrow();
  seal.crc32c = file->crc32c();
  const std::string tail = TailTag() + LittleEndian(seal.crc32c, 4);
  file->Append(tail.data(), tail.size());
  if (!complete || file->size() != seal.file_bytes) {
    throw Error(ErrorCode::kInternal, {file->path()}, "the message could not be serialized");
  }
  return seal;
}

FileChecksum WriteModelTo(caffe::NetParameter& net, AtomicFile* file) {
  if (IsNamedAsHdf5(file->path())) return WriteHdf5Model(net, file);
  net.clear_file_bytes();
  net.clear_crc32c();
  return WriteChecksummed(net, file);
}

FileChecksum WriteStateTo(caffe::SolverState& state, AtomicFile* file) {
  state.clear_file_bytes();
  state.clear_crc32c();
  return IsNamedAsHdf5(file->path()) ? WriteHdf5State(state, file) : WriteChecksummed(state, file);
}

std::optional<FileChecksum> VerifyChecksum(const std::string& path) {
  const uint64_t size = FileSize(path);
  const FileHandle file = OpenForReading(path);
  if (size == 0) ThrowDamaged(path, "the file is empty");
  const std::string head = ReadPiece(file, path, 0, kHdf5ChecksumBytes);
  if (HasHdf5Checksum(head)) return VerifyHdf5Checksum(path, size);
  if (IsHdf5(path)) return std::nullopt;
  const std::string tail =
      ReadPiece(file, path, size - std::min<uint64_t>(size, kTailBytes), kTailBytes);
  const int bits = BitsOffHead(head);
  if (bits == 0 || (bits == 1 && tail.starts_with(TailTag()))) {
    return CheckSealed(file, path, size, head, tail);
  }
  if (size > kSealedFileMaxBytes) {
    throw Error(ErrorCode::kData, {path},
                Join("the file has ", size, " bytes; a protobuf file can have at most 2 GiB - 1"));
  }
  return std::nullopt;
}

std::optional<FileChecksum> StoredChecksum(const std::string& path) {
  const uint64_t size = FileSize(path);
  const FileHandle file = OpenForReading(path);
  const std::string head = ReadPiece(file, path, 0, kHdf5ChecksumBytes);
  if (HasHdf5Checksum(head)) return FileChecksum{StoredHdf5Checksum(head), size};
  const std::string tail =
      ReadPiece(file, path, size - std::min<uint64_t>(size, kTailBytes), kTailBytes);
  if (head.starts_with(HeadTag()) && tail.starts_with(TailTag())) {
    const uint64_t crc = FromLittleEndian(std::string_view(tail).substr(kTagBytes));
    return FileChecksum{static_cast<uint32_t>(crc), size};
  }
  return std::nullopt;
}

void ParseFile(const std::string& path, const std::string& kind, ErrorCode unparsable,
               google::protobuf::Message* message) {
  const FileHandle file = OpenForReading(path);
  io::FileInputStream stream(file.get(), kBlockBytes);
  io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT_MAX);
  const bool parsed = message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  if (stream.GetErrno() != 0) {
    ThrowFileError(FileUse::kInput, "read", AbsolutePath(path), stream.GetErrno());
  }
  if (!parsed) {
    throw Error(unparsable, {path},
                Join("the file cannot be parsed as a ", kind,
                     ": it is another kind of file, truncated or damaged"));
  }
}

FileKind SniffKind(const std::string& path) {
  if (IsHdf5(path)) {
    const Hdf5Reader reader(path);
    if (reader.Has("data")) return FileKind::kModel;
    return reader.Has("iter") ? FileKind::kState : FileKind::kUnknown;
  }
  const FileHandle file = OpenForReading(path);
  io::FileInputStream stream(file.get());
  io::CodedInputStream in(&stream);
  while (const uint32_t tag = in.ReadTag()) {
    const uint32_t number = tag >> 3, wire_type = tag & 7;
    if (number == caffe::NetParameter::kLayerFieldNumber) return FileKind::kModel;
    // SolverState.iter is a varint where NetParameter.name is a string.
    if (number == 1 && wire_type == 0) return FileKind::kState;
    if (number == 1 && wire_type == 2) return FileKind::kModel;
    if (!SkipValue(&in, wire_type)) break;
  }
  return FileKind::kUnknown;
}

}  // namespace trainer
