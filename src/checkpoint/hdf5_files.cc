#include "hdf5_files.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <set>

#include "checksum_bytes.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

constexpr char kExtras[] = "trainer_state";
constexpr int kMaxBlobs = 1 << 16;  // limit for a layer or a history, far above the size of any net
constexpr int kMaxDepth = 64;

// Returns the number that `name` represents, as Caffe writes it, or -1.
int BlobIndex(const std::string& name) {
  const int index = ParseNumber<int>(name).value_or(-1);
  return index >= 0 && index < kMaxBlobs && Join(index) == name ? index : -1;
}

std::vector<int64_t> DimsOf(const caffe::BlobProto& blob) {
  return {blob.shape().dim().begin(), blob.shape().dim().end()};
}

std::span<const float> ValuesOf(const google::protobuf::RepeatedField<float>& values) {
  return {values.data(), static_cast<size_t>(values.size())};
}

// Reads an array into a blob. Throws `damaged` if it has integers or more numbers than a blob can
// hold.
void FillBlob(const Hdf5Array& array, ErrorCode damaged, caffe::BlobProto* blob) {
  if (!array.is_float()) {
    throw Error(damaged, {array.file()},
                Join("'", EscapeControl(array.name()),
                     "' has integers, but weights must be floats; store it as floats"));
  }
  if (array.count() > INT_MAX) {
    throw Error(damaged, {array.file()},
                Join("'", EscapeControl(array.name()), "' has ", array.count(),
                     " numbers; a blob can have at most 2^31 - 1"));
  }
  for (const int64_t dim : array.dims()) blob->mutable_shape()->add_dim(dim);
  blob->mutable_shape();
  blob->mutable_data()->Resize(static_cast<int>(array.count()), 0.0f);
  array.Read(
      std::span<float>(blob->mutable_data()->mutable_data(), static_cast<size_t>(array.count())));
}

// Walks the groups below /data and turns each that holds blobs into a layer.
class ModelReader {
 public:
  explicit ModelReader(const std::string& path) : reader_(path) {}

  // Returns all layers with names and blobs. Throws kData for a file without the group data. To be
  // called once.
  caffe::NetParameter Read() {
    if (!reader_.Has("data")) {
      throw Error(ErrorCode::kData, {reader_.path()},
                  "the file has no group 'data', so it is not a weights file");
    }
    for (const Hdf5Reader::Member& member : reader_.Members("")) {
      if (member.name == "data") seen_.insert(member.address);
    }
    ReadGroup("data", "", 0);
    return std::move(net_);
  }

 private:
  // Adds the layer that a group's numbered arrays form, and visits the groups inside. `layer_name`
  // is the group's path below data.
  void ReadGroup(const std::string& group, const std::string& layer_name, int depth) {
    if (depth > kMaxDepth) Fail(group, "is nested too deeply");
    caffe::LayerParameter layer;
    bool has_groups = false;
    for (const Hdf5Reader::Member& member : reader_.Members(group)) {
      const std::string path = Join(group, "/", member.name);
      if (!seen_.insert(member.address).second) Fail(path, "is a second name of another object");
      if (member.is_group) {
        has_groups = true;
        ReadGroup(path, layer_name.empty() ? member.name : Join(layer_name, "/", member.name),
                  depth + 1);
        continue;
      }
      const int index = BlobIndex(member.name);
      if (index < 0 || depth == 0) Fail(path, "is not a numbered blob of a layer");
      while (layer.blobs_size() <= index) layer.add_blobs();
      FillBlob(reader_.Array(path), ErrorCode::kData, layer.mutable_blobs(index));
    }
    // A group that contains only other groups does not become a layer.
    if (depth == 0 || (layer.blobs_size() == 0 && has_groups)) return;
    layer.set_name(layer_name);
    net_.add_layer()->Swap(&layer);
  }

  // Throws kData: "'name' problem; the file is damaged or is not a weights file".
  [[noreturn]] void Fail(const std::string& name, const std::string& problem) const {
    throw Error(ErrorCode::kData, {reader_.path()},
                Join("'", EscapeControl(name), "' ", problem,
                     "; the file is damaged or is not a weights file"));
  }

  Hdf5Reader reader_;
  caffe::NetParameter net_;
  std::set<uint64_t> seen_;  // visited objects; prevents loops and repeats through second names
};

// Reads a single integer. Throws kBadSnapshot for any other array.
int32_t ReadInt(const Hdf5Reader& reader, const std::string& name) {
  const Hdf5Array array = reader.Array(name);
  int32_t value = 0;
  if (array.count() != 1 || array.is_float()) {
    throw Error(ErrorCode::kBadSnapshot, {reader.path()},
                Join("'", name, "' is not a single integer; the file is not a solver state"));
  }
  array.Read(std::span<int32_t>(&value, 1));
  return value;
}

// Parses what only our states have, from the bytes in /trainer_state. ReadHdf5State then overwrites
// the fields that Caffe stores as arrays.
void ReadExtras(const Hdf5Reader& reader, caffe::SolverState* state) {
  const Hdf5Array array = reader.Array(kExtras);
  std::string bytes(static_cast<size_t>(array.count()), '\0');
  array.Read(std::span<uint8_t>(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));
  if (array.is_float() || !state->ParseFromString(bytes)) {
    throw Error(ErrorCode::kBadSnapshot, {reader.path()},
                Join("'", kExtras, "' cannot be parsed; the file is damaged"));
  }
}

// Adds the layers' blobs, and their gradients if there are any. A blob that several layers share by
// a param name is stored only for the first of them.
void BuildModel(const caffe::NetParameter& net, Hdf5Builder* builder) {
  std::vector<std::string> names;
  for (const caffe::LayerParameter& layer : net.layer()) names.push_back(layer.name());
  CheckHdf5Names(names);
  std::set<std::string> owned;
  builder->AddGroup("data");
  for (const caffe::LayerParameter& layer : net.layer()) {
    builder->AddGroup("data/" + layer.name());
    for (int i = 0; i < layer.blobs_size(); ++i) {
      const caffe::BlobProto& blob = layer.blobs(i);
      const std::string share = i < layer.param_size() ? layer.param(i).name() : "";
      const std::string place = Join("/", layer.name(), "/", i);
      if (share.empty() || owned.insert(share).second) {
        builder->AddFloats("data" + place, DimsOf(blob), ValuesOf(blob.data()));
      }
      if (blob.diff_size() > 0) {
        builder->AddFloats("diff" + place, DimsOf(blob), ValuesOf(blob.diff()));
      }
    }
  }
}

// Adds the state's arrays as Caffe does, and the rest of the message in /trainer_state.
void BuildState(caffe::SolverState& state, Hdf5Builder* builder) {
  builder->AddInt("iter", state.iter());
  builder->AddInt("current_step", state.current_step());
  builder->AddText("learned_net", state.learned_net());
  builder->AddGroup("history");
  for (int i = 0; i < state.history_size(); ++i) {
    builder->AddFloats(Join("history/", i), DimsOf(state.history(i)),
                       ValuesOf(state.history(i).data()));
  }
  // The whole message except its arrays is stored, so that a new field needs no line here.
  google::protobuf::RepeatedPtrField<caffe::BlobProto> history;
  std::string bytes;
  history.Swap(state.mutable_history());
  state.SerializeToString(&bytes);
  history.Swap(state.mutable_history());
  builder->AddBytes(kExtras, bytes);
}

constexpr std::string_view kMark = "trainer, sealed HDF5 that begins at byte 512\r\n\x1a\n";
constexpr size_t kSizeAt = kMark.size(), kCrcAt = kSizeAt + 8;
constexpr int kMaxFlips = 8;  // the mark has 384 bits; no other file differs in so few

// Returns how many bits of the first bytes differ from the mark; bytes that are missing because the
// file was truncated count as equal.
int BitsOffMark(const std::string& head) {
  int bits = 0;
  for (size_t i = 0; i < std::min(head.size(), kMark.size()); ++i) {
    bits += std::popcount(static_cast<unsigned char>(head[i] ^ kMark[i]));
  }
  return bits;
}

// Writes the seal and then the HDF5 data that was added to the builder.
FileChecksum WriteChecksummed(Hdf5Builder& builder, AtomicFile* file) {
  FileChecksum seal;
  seal.file_bytes = builder.Finish();
  std::string head = std::string(kMark) + LittleEndian(seal.file_bytes, 8);
  head.resize(kHdf5ChecksumBytes, '\0');
  // The checksum is stored before the data that it covers, so a first pass over the memory computes
  // it and a second pass writes the data.
  seal.crc32c = Crc32c(head.data(), head.size());
  builder.Emit(kHdf5ChecksumBytes, [&](const void* data, size_t bytes) {
    seal.crc32c = Crc32c(data, bytes, seal.crc32c);
  });
  head.replace(kCrcAt, 4, LittleEndian(seal.crc32c, 4));
  file->Append(head.data(), head.size());
  builder.Emit(kHdf5ChecksumBytes,
               [&](const void* data, size_t bytes) { file->Append(data, bytes); });
  return seal;
}

}  // namespace

caffe::NetParameter ReadHdf5Model(const std::string& path) { return ModelReader(path).Read(); }

caffe::SolverState ReadHdf5State(const std::string& path) {
  const Hdf5Reader reader(path, ErrorCode::kBadSnapshot);
  caffe::SolverState state;
  if (reader.Has(kExtras)) ReadExtras(reader, &state);
  if (!reader.Has("iter")) {
    throw Error(ErrorCode::kBadSnapshot, {path},
                "the file has no iteration number: it is not a solver state, or it is damaged");
  }
  state.set_iter(ReadInt(reader, "iter"));
  if (reader.Has("current_step")) state.set_current_step(ReadInt(reader, "current_step"));
  if (reader.Has("learned_net")) state.set_learned_net(reader.Text("learned_net"));
  state.clear_history();
  if (!reader.Has("history")) return state;
  std::set<uint64_t> seen;
  for (const Hdf5Reader::Member& member : reader.Members("history")) {
    if (seen.insert(member.address).second) continue;
    throw Error(ErrorCode::kBadSnapshot, {path},
                "two of its history blobs are the same object; the file is damaged");
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    FillBlob(reader.Array(Join("history/", i)), ErrorCode::kBadSnapshot, state.add_history());
  }
  return state;
}

FileChecksum WriteHdf5Model(const caffe::NetParameter& net, AtomicFile* file) {
  Hdf5Builder builder(file->path(), kHdf5ChecksumBytes);
  BuildModel(net, &builder);
  return WriteChecksummed(builder, file);
}

FileChecksum WriteHdf5State(caffe::SolverState& state, AtomicFile* file) {
  Hdf5Builder builder(file->path(), kHdf5ChecksumBytes);
  BuildState(state, &builder);
  return WriteChecksummed(builder, file);
}

bool HasHdf5Checksum(const std::string& head) {
  return BitsOffMark(head) <= (head.size() < kMark.size() ? 0 : kMaxFlips);
}

uint32_t StoredHdf5Checksum(const std::string& head) {
  if (head.size() < kHdf5ChecksumBytes) return 0;
  return static_cast<uint32_t>(FromLittleEndian(std::string_view(head).substr(kCrcAt, 4)));
}

FileChecksum VerifyHdf5Checksum(const std::string& path, uint64_t size) {
  const FileHandle file = OpenForReading(path);
  std::string head = ReadPiece(file, path, 0, kHdf5ChecksumBytes);
  if (head.size() < kHdf5ChecksumBytes) {
    ThrowDamaged(path, Join("the file is truncated: it has only ", size, " bytes"));
  }
  const uint64_t stated = FromLittleEndian(std::string_view(head).substr(kSizeAt, 8));
  const FileChecksum seal{StoredHdf5Checksum(head), size};
  head.replace(kCrcAt, 4, 4, '\0');
  const uint32_t crc = ChecksumOf(file, path, kHdf5ChecksumBytes, size - kHdf5ChecksumBytes,
                                  Crc32c(head.data(), head.size()));
  if (BitsOffMark(head) == 0 && stated > size) {
    ThrowDamaged(path, Join("the file is truncated: it has ", size, " of ", stated, " bytes"));
  }
  if (BitsOffMark(head) != 0 || stated != size || crc != seal.crc32c) {
    ThrowDamaged(
        path, "its checksum does not match: the file was changed or damaged after it was written");
  }
  return seal;
}

}  // namespace trainer
