#include "trainer/hdf5/reader.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "library_lock.h"
#include "trainer/base/text/text.h"
#include "vfd.h"

namespace trainer {
namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr uint64_t kFirstUserBlock = 512;
constexpr size_t kMaxTextBytes = 1 << 16;
constexpr size_t kMaxNumberBytes = 16;
constexpr uint64_t kChunkCacheBytes = 1 << 20;  // libhdf5's own, of each dataset

std::string Quoted(const std::string& name) {
  return Join("'", EscapeControl(name.empty() ? "/" : name), "'");
}

herr_t AddName(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

// Throws kIo if reading the file failed, which explains what HDF5 says.
void ThrowIfFailed(const DiskFile& file, const std::string& path) {
  if (file.error() != 0) ThrowFileError(FileUse::kInput, "read", path, file.error());
}

// The most that a filter of the library can have packed one byte from: deflate's limit is 1032.
constexpr uint64_t kMaxPacking = 1100;

std::string TooLittle(uint64_t wanted, uint64_t stored) {
  return Join("needs ", wanted, " bytes for its shape, but the file has only ", stored,
              "; it is incomplete, truncated or damaged");
}

std::string ContiguousProblem(hid_t data, hid_t properties, uint64_t wanted, uint64_t file_bytes) {
  if (H5Pget_external_count(properties) != 0) {
    return "stores its numbers in another file, and such references are not followed; copy them "
           "into this file (h5repack)";
  }
  const uint64_t stored = H5Dget_storage_size(data);
  const haddr_t offset = H5Dget_offset(data);
  if (stored < wanted || offset == HADDR_UNDEF) return TooLittle(wanted, stored);
  if (offset > file_bytes || file_bytes - offset < wanted) {
    return TooLittle(wanted, offset > file_bytes ? 0 : file_bytes - offset);
  }
  return "";
}

std::string ChunkProblem(hid_t data, hid_t properties, std::span<const hsize_t> dims,
                         size_t element_bytes, uint64_t file_bytes) {
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  if (H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) !=
      static_cast<int>(dims.size())) {
    return "has chunks that do not match its shape; the file is damaged";
  }
  uint64_t chunks = 1, chunk_bytes = element_bytes, needed = 0;
  bool overflow = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (chunk[i] == 0) return "has empty chunks; the file is damaged";
    const uint64_t along = dims[i] / chunk[i] + (dims[i] % chunk[i] != 0 ? 1 : 0);
    overflow |= __builtin_mul_overflow(chunks, along, &chunks);
    overflow |= __builtin_mul_overflow(chunk_bytes, chunk[i], &chunk_bytes);
  }
  overflow |= __builtin_mul_overflow(chunks, chunk_bytes, &needed);
  const uint64_t stored = std::min<uint64_t>(H5Dget_storage_size(data), file_bytes);
  const uint64_t packing = H5Pget_nfilters(properties) > 0 ? kMaxPacking : 1;
  if (overflow || needed / packing > stored) {
    return TooLittle(overflow ? UINT64_MAX : needed, stored);
  }
  const Hdf5Handle space(H5Dget_space(data));
  hsize_t there = 0;
  if (H5Dget_num_chunks(data, space.get(), &there) < 0 || there != chunks) {
    return Join("lacks ", chunks - std::min<uint64_t>(there, chunks), " of its ", chunks,
                " chunks; it is incomplete or damaged");
  }
  return "";
}

// Returns why the dataset's bytes cannot all be in a file of `file_bytes` bytes; "" if they are.
// `dims` is its shape, `wanted` the bytes of all elements together.
std::string BoundsProblem(hid_t data, std::span<const hsize_t> dims, size_t element_bytes,
                          uint64_t wanted, uint64_t file_bytes) {
  if (wanted == 0) return "";
  const Hdf5Handle properties(H5Dget_create_plist(data));
  switch (H5Pget_layout(properties.get())) {
    case H5D_COMPACT:
      return H5Dget_storage_size(data) < wanted ? TooLittle(wanted, H5Dget_storage_size(data)) : "";
    case H5D_CONTIGUOUS:
      return ContiguousProblem(data, properties.get(), wanted, file_bytes);
    case H5D_CHUNKED:
      return ChunkProblem(data, properties.get(), dims, element_bytes, file_bytes);
    case H5D_VIRTUAL:
      return "is a virtual dataset of other files, and such references are not followed; copy the "
             "numbers into this file (h5repack)";
    default:
      return "is stored in an unknown way";
  }
}

// Size of one chunk, decompressed; 0 if the dataset is not stored in chunks.
uint64_t ChunkBytes(hid_t data, size_t element_bytes) {
  const Hdf5Handle properties(H5Dget_create_plist(data));
  if (H5Pget_layout(properties.get()) != H5D_CHUNKED) return 0;
  std::array<hsize_t, H5S_MAX_RANK> chunk{};
  const int axes = H5Pget_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  uint64_t bytes = element_bytes;
  for (int i = 0; i < axes; ++i) bytes *= chunk[static_cast<size_t>(i)];
  return bytes;
}

}  // namespace

bool IsHdf5(const std::string& path) {
  DiskFile file(OpenForReading(path));
  ThrowIfFailed(file, path);
  std::string head(kSignature.size(), '\0');
  for (uint64_t at = 0; at + head.size() <= file.Size(); at = std::max(2 * at, kFirstUserBlock)) {
    if (!file.Read(at, head.size(), head.data())) ThrowIfFailed(file, path);
    if (head == kSignature) return true;
  }
  return false;
}

Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;
Hdf5Reader::~Hdf5Reader() { file_.Close(); }

Hdf5Reader::Hdf5Reader(const std::string& path, ErrorCode damaged)
    : path_(path), damaged_(damaged) {
  if (!IsHdf5(path)) {
    throw Error(damaged_, {path_},
                "this is not an HDF5 file, or its start is damaged; give another file");
  }
  storage_ = std::make_unique<DiskFile>(OpenForReading(path));
  const Hdf5Lock lock;
  const Hdf5Handle access = MakeFileAccess(*storage_, path_);
  file_ = Hdf5Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.get()));
  if (file_.valid()) return;
  ThrowIfFailed(*storage_, path_);
  ThrowHdf5(damaged_, path_, "this HDF5 file cannot be opened",
            "it is truncated, damaged or still being written: copy it again or give another file");
}

void Hdf5Reader::Fail(const std::string& name, const std::string& problem) const {
  ThrowIfFailed(*storage_, path_);
  throw Error(damaged_, {path_}, Join(Quoted(name), " ", problem));
}

bool Hdf5Reader::Has(const std::string& name) const {
  const Hdf5Lock lock;
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    if (H5Lexists(file_.get(), name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return true;
}

// Every link on the way must be a plain one: others could lead anywhere.
void Hdf5Reader::CheckLink(const std::string& name) const {
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string part = name.substr(0, end);
    H5L_info_t info{};
    if (H5Lexists(file_.get(), part.c_str(), H5P_DEFAULT) <= 0 ||
        H5Lget_info(file_.get(), part.c_str(), &info, H5P_DEFAULT) < 0) {
      const size_t slash = part.rfind('/');
      Refuse(slash == std::string::npos ? "" : part.substr(0, slash), part);
    }
    if (info.type != H5L_TYPE_HARD) {
      Fail(part,
           Join("is a ", info.type == H5L_TYPE_SOFT ? "soft link" : "link to another file",
                ", and links are not followed; copy the data into this file (h5repack, h5copy)"));
    }
  }
}

// `name` is not in `group`.
void Hdf5Reader::Refuse(const std::string& group, const std::string& name) const {
  constexpr size_t kMostNames = 20;
  std::vector<std::string> there = NamesIn(OpenObject(group), group);
  if (there.size() > kMostNames) {
    there.resize(kMostNames);
    there.emplace_back("...");
  }
  Fail(name, Join("is not in this file; the file has: ",
                  there.empty() ? std::string("no datasets") : EscapeControl(JoinList(there))));
}

Hdf5Handle Hdf5Reader::OpenObject(const std::string& name) const {
  if (!name.empty()) CheckLink(name);
  Hdf5Handle object(H5Oopen(file_.get(), name.empty() ? "/" : name.c_str(), H5P_DEFAULT));
  if (!object.valid())
    Fail(name, Join("cannot be opened: ", Hdf5Reason(), "; the file is damaged"));
  return object;
}

std::vector<std::string> Hdf5Reader::NamesIn(const Hdf5Handle& object,
                                             const std::string& group) const {
  if (H5Iget_type(object.get()) != H5I_GROUP) Fail(group, "is a dataset, but a group is expected");
  std::vector<std::string> names;
  hsize_t at = 0;
  if (H5Literate(object.get(), H5_INDEX_NAME, H5_ITER_INC, &at, AddName, &names) < 0) {
    Fail(group, Join("cannot be listed: ", Hdf5Reason(), "; the file is damaged"));
  }
  return names;
}

std::vector<Hdf5Reader::Member> Hdf5Reader::Members(const std::string& group) const {
  const Hdf5Lock lock;
  const Hdf5Handle object = OpenObject(group);
  std::vector<Member> members;
  for (const std::string& name : NamesIn(object, group)) {
    const std::string path = group.empty() ? name : Join(group, "/", name);
    H5L_info_t link{};
    if (H5Lget_info(object.get(), name.c_str(), &link, H5P_DEFAULT) >= 0 &&
        link.type != H5L_TYPE_HARD) {
      CheckLink(path);
    }
    H5O_info_t info{};
    if (H5Oget_info_by_name(object.get(), name.c_str(), &info, H5P_DEFAULT) < 0) {
      Fail(path, Join("cannot be opened: ", Hdf5Reason(), "; the file is damaged"));
    }
    if (info.type == H5O_TYPE_NAMED_DATATYPE) continue;
    members.push_back({name, info.type == H5O_TYPE_GROUP, info.addr});
  }
  return members;
}

Hdf5Handle Hdf5Reader::OpenDataset(const std::string& name) const {
  Hdf5Handle data = OpenObject(name);
  if (H5Iget_type(data.get()) != H5I_DATASET) Fail(name, "is not a dataset but a group or a type");
  return data;
}

// libhdf5 keeps no chunk in memory that is larger than its cache: it would be read, and
// decompressed, again for each few of its rows.
Hdf5Handle Hdf5Reader::OpenToHold(const std::string& name, uint64_t chunk_bytes) const {
  const Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(access.get(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, chunk_bytes,
                     H5D_CHUNK_CACHE_W0_DEFAULT);
  Hdf5Handle data(H5Dopen2(file_.get(), name.c_str(), access.get()));
  if (!data.valid()) Fail(name, Join("cannot be opened: ", Hdf5Reason(), "; the file is damaged"));
  return data;
}

Hdf5Array Hdf5Reader::Array(const std::string& name) const {
  const Hdf5Lock lock;
  Hdf5Array array;
  array.file_ = path_;
  array.name_ = name;
  array.damaged_ = damaged_;
  array.storage_ = storage_.get();
  array.data_ = OpenDataset(name);
  const Hdf5Handle type(H5Dget_type(array.data_.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  const size_t bytes = H5Tget_size(type.get());
  if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || bytes < 1 || bytes > kMaxNumberBytes) {
    Fail(name, "does not contain plain numbers; store it as floats or integers");
  }
  array.is_float_ = kind == H5T_FLOAT;
  const Hdf5Handle space(H5Dget_space(array.data_.get()));
  const int axes = H5Sget_simple_extent_ndims(space.get());
  if (axes < 0 || H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
    Fail(name, "has no shape; the file is damaged or the dataset is empty");
  }
  std::vector<hsize_t> sizes(static_cast<size_t>(axes));
  if (axes > 0) H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  uint64_t total = bytes;
  for (const hsize_t size : sizes) {
    if (size > std::numeric_limits<int64_t>::max() || __builtin_mul_overflow(total, size, &total)) {
      Fail(name, "has too many elements; the file is damaged");
    }
    array.dims_.push_back(static_cast<int64_t>(size));
    array.count_ *= array.dims_.back();
  }
  const std::string problem =
      BoundsProblem(array.data_.get(), sizes, bytes, total, storage_->Size());
  if (!problem.empty()) Fail(name, problem);
  const uint64_t chunk_bytes = ChunkBytes(array.data_.get(), bytes);
  if (chunk_bytes > kChunkCacheBytes) {
    array.data_.Close();  // libhdf5 shares one cache among all that have the dataset open
    array.data_ = OpenToHold(name, chunk_bytes);
  }
  return array;
}

std::string Hdf5Reader::Text(const std::string& name) const {
  const Hdf5Lock lock;
  const Hdf5Handle data = OpenDataset(name);
  const Hdf5Handle type(H5Dget_type(data.get()));
  const Hdf5Handle space(H5Dget_space(data.get()));
  const size_t bytes = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) > 0 ||
      H5Sget_simple_extent_npoints(space.get()) != 1 || bytes > kMaxTextBytes) {
    Fail(name, "is not a fixed-length string");
  }
  std::string text(bytes, '\0');
  if (H5Dread(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
    Fail(name, Join("cannot be read: ", Hdf5Reason(), "; the file is damaged"));
  }
  return text.substr(0, text.find('\0'));
}

void Hdf5Array::Fail() const {
  ThrowIfFailed(*storage_, file_);
  ThrowHdf5(damaged_, file_, Join(Quoted(name_), " cannot be read"),
            "the file is damaged or uses a compression that this program does not have");
}

void Hdf5Array::ReadAs(int64_t memory_type, size_t elements, void* to) const {
  const Hdf5Lock lock;
  if (elements != static_cast<uint64_t>(count_)) {
    throw Error(ErrorCode::kInternal, {file_}, "a buffer of another size than the dataset");
  }
  if (count_ == 0) return;
  if (H5Dread(data_.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0) Fail();
}

void Hdf5Array::Read(std::span<float> to) const { ReadAs(H5T_NATIVE_FLOAT, to.size(), to.data()); }
void Hdf5Array::Read(std::span<int32_t> to) const {
  ReadAs(H5T_NATIVE_INT32, to.size(), to.data());
}
void Hdf5Array::Read(std::span<uint8_t> to) const {
  ReadAs(H5T_NATIVE_UINT8, to.size(), to.data());
}

void Hdf5Array::ReadRows(int64_t first, int64_t rows, std::span<float> to) const {
  const Hdf5Lock lock;
  std::vector<hsize_t> start(dims_.size(), 0), size(dims_.begin(), dims_.end());
  start.at(0) = static_cast<hsize_t>(first);
  size.at(0) = static_cast<hsize_t>(rows);
  if (std::accumulate(size.begin(), size.end(), hsize_t{1}, std::multiplies()) != to.size()) {
    throw Error(ErrorCode::kInternal, {file_}, "a buffer of another size than the rows");
  }
  // A memory space of another rank than the selection would send libhdf5 along its path for any
  // pair of shapes, element by element: a hundred times as slow.
  const Hdf5Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr));
  const Hdf5Handle space(H5Dget_space(data_.get()));
  if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(),
                          nullptr) < 0 ||
      H5Dread(data_.get(), H5T_NATIVE_FLOAT, memory.get(), space.get(), H5P_DEFAULT, to.data()) <
          0) {
    Fail();
  }
}

}  // namespace trainer
