#include "trainer/hdf5/builder.h"

#include <algorithm>
#include <array>

#include "library_lock.h"
#include "trainer/base/text/text.h"
#include "vfd.h"

namespace trainer {

Hdf5Builder::Hdf5Builder(const std::string& path, uint64_t user_bytes)
    : path_(path), storage_(std::make_unique<SparseFile>()) {
  const Hdf5Lock lock;
  const Hdf5Handle access = MakeFileAccess(*storage_, path_);
  const Hdf5Handle create(H5Pcreate(H5P_FILE_CREATE));
  make_groups_ = Hdf5Handle(H5Pcreate(H5P_LINK_CREATE));
  plain_group_ = Hdf5Handle(H5Pcreate(H5P_GROUP_CREATE));
  plain_array_ = Hdf5Handle(H5Pcreate(H5P_DATASET_CREATE));
  // Early and never: offsets are known at once, no number passes the library. No times of day.
  const bool ready = H5Pset_userblock(create.get(), user_bytes) >= 0 &&
                     H5Pset_create_intermediate_group(make_groups_.get(), 1) >= 0 &&
                     H5Pset_obj_track_times(plain_group_.get(), false) >= 0 &&
                     H5Pset_obj_track_times(plain_array_.get(), false) >= 0 &&
                     H5Pset_layout(plain_array_.get(), H5D_CONTIGUOUS) >= 0 &&
                     H5Pset_alloc_time(plain_array_.get(), H5D_ALLOC_TIME_EARLY) >= 0 &&
                     H5Pset_fill_time(plain_array_.get(), H5D_FILL_TIME_NEVER) >= 0;
  if (ready) {
    file_ = Hdf5Handle(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, create.get(), access.get()));
  }
  if (!file_.valid()) ThrowHdf5(ErrorCode::kInternal, path_, "cannot begin", "please report it");
}

Hdf5Builder::~Hdf5Builder() = default;

void Hdf5Builder::Refuse(const std::string& path) const {
  ThrowHdf5(ErrorCode::kConfig, path_, Join("cannot make '", EscapeControl(path), "'"),
            "two layers or blobs would have the same path in HDF5; rename a layer, or set "
            "snapshot_format: BINARYPROTO");
}

void Hdf5Builder::AddGroup(const std::string& path) {
  const Hdf5Lock lock;
  bool there = true;
  for (size_t end = 0; there && end != std::string::npos;) {
    end = path.find('/', end + 1);
    there = H5Lexists(file_.get(), path.substr(0, end).c_str(), H5P_DEFAULT) > 0;
  }
  const Hdf5Handle group(there ? H5Gopen2(file_.get(), path.c_str(), H5P_DEFAULT)
                               : H5Gcreate2(file_.get(), path.c_str(), make_groups_.get(),
                                            plain_group_.get(), H5P_DEFAULT));
  if (!group.valid()) Refuse(path);
}

void Hdf5Builder::AddArray(const std::string& path, int64_t type, int64_t space, const void* data,
                           uint64_t bytes) {
  const Hdf5Handle array(H5Dcreate2(file_.get(), path.c_str(), type, space, make_groups_.get(),
                                    plain_array_.get(), H5P_DEFAULT));
  if (!array.valid()) Refuse(path);
  if (bytes == 0) return;
  const haddr_t offset = H5Dget_offset(array.get());
  if (offset == HADDR_UNDEF) {
    ThrowHdf5(ErrorCode::kInternal, path_, Join("no room for '", path, "'"), "please report it");
  }
  arrays_.push_back({offset, bytes, data});
}

void Hdf5Builder::AddFloats(const std::string& path, std::span<const int64_t> dims,
                            std::span<const float> values) {
  const Hdf5Lock lock;
  const std::vector<hsize_t> sizes(dims.begin(), dims.end());
  const Hdf5Handle space(
      sizes.empty() ? H5Screate(H5S_SCALAR)
                    : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
  if (!space.valid()) Refuse(path);
  AddArray(path, H5T_IEEE_F32LE, space.get(), values.data(), values.size_bytes());
}

void Hdf5Builder::AddInt(const std::string& path, int32_t value) {
  const Hdf5Lock lock;
  const hsize_t one = 1;
  const Hdf5Handle space(H5Screate_simple(1, &one, nullptr));
  const auto* bytes = reinterpret_cast<const char*>(&value);
  const std::string& kept = small_.emplace_back(bytes, sizeof(value));
  AddArray(path, H5T_STD_I32LE, space.get(), kept.data(), kept.size());
}

void Hdf5Builder::AddText(const std::string& path, const std::string& text) {
  const Hdf5Lock lock;
  const std::string& kept = small_.emplace_back(text + '\0');
  const Hdf5Handle type(H5Tcopy(H5T_C_S1));
  const Hdf5Handle space(H5Screate(H5S_SCALAR));
  if (H5Tset_size(type.get(), kept.size()) < 0) Refuse(path);
  AddArray(path, type.get(), space.get(), kept.data(), kept.size());
}

void Hdf5Builder::AddBytes(const std::string& path, std::string_view bytes) {
  const Hdf5Lock lock;
  const std::string& kept = small_.emplace_back(bytes);
  const hsize_t size = kept.size();
  const Hdf5Handle space(H5Screate_simple(1, &size, nullptr));
  AddArray(path, H5T_STD_U8LE, space.get(), kept.data(), kept.size());
}

uint64_t Hdf5Builder::Finish() {
  if (!file_.Close()) {
    const Hdf5Lock lock;
    ThrowHdf5(ErrorCode::kInternal, path_, "cannot finish", "please report it");
  }
  std::ranges::sort(arrays_, {}, &Array::offset);
  return storage_->Size();
}

void Hdf5Builder::Emit(uint64_t from,
                       const std::function<void(const void* data, size_t bytes)>& sink) const {
  std::array<char, SparseFile::kPageBytes> page;
  const auto emit_pages = [&](uint64_t begin, uint64_t end) {
    while (begin < end) {
      const size_t piece = std::min<uint64_t>(end - begin, page.size());
      storage_->Read(begin, piece, page.data());
      sink(page.data(), piece);
      begin += piece;
    }
  };
  for (const Array& array : arrays_) {
    emit_pages(from, array.offset);
    sink(array.data, array.bytes);
    from = array.offset + array.bytes;
  }
  emit_pages(from, storage_->Size());
}

}  // namespace trainer
