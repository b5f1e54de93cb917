#include "trainer/hdf5/appender.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "library_lock.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/output_file.h"
#include "vfd.h"

namespace trainer {
namespace {

constexpr uint64_t kChunkBytes = 1 << 20;

FileHandle CreateFile(const std::string& path, const std::string& shown, Hdf5Creation creation) {
  const int existing = creation == Hdf5Creation::kNew ? O_EXCL : O_TRUNC;
  const int fd = OpenOwnFile(path, O_RDWR | O_CREAT | existing);
  if (fd < 0) ThrowFileError(FileUse::kOutput, "create", AbsolutePath(shown), errno);
  return {FileOps::Posix(), fd};
}

}  // namespace

Hdf5Appender::Hdf5Appender(const std::string& path, const std::string& shown, Hdf5Creation creation)
    : path_(shown.empty() ? path : shown),
      storage_(std::make_unique<DiskFile>(CreateFile(path, path_, creation))) {
  const Hdf5Lock lock;
  const Hdf5Handle access = MakeFileAccess(*storage_, path_);
  file_ = Hdf5Handle(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  Check(file_.valid());
}

Hdf5Appender::~Hdf5Appender() {
  arrays_.clear();
  file_.Close();
}

void Hdf5Appender::Check(bool done) const {
  if (storage_->error() != 0) {
    ThrowFileError(FileUse::kOutput, "write", AbsolutePath(path_), storage_->error());
  }
  if (!done) ThrowHdf5(ErrorCode::kInternal, path_, "cannot write", "please report it");
}

void Hdf5Appender::Make(const std::string& name, std::span<const int64_t> dims,
                        const Element& element) {
  std::vector<hsize_t> now(dims.begin(), dims.end()), most = now, chunk = now;
  uint64_t row_bytes = element.bytes;
  for (const int64_t dim : dims.subspan(1)) row_bytes *= static_cast<uint64_t>(dim);
  most[0] = H5S_UNLIMITED;
  chunk[0] = std::clamp<uint64_t>(kChunkBytes / std::max<uint64_t>(row_bytes, 1), 1, 1024);
  now[0] = 0;
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(now.size()), now.data(), most.data()));
  const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE));
  Check(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0);
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE));
  Check(H5Pset_create_intermediate_group(links.get(), 1) >= 0);
  Hdf5Handle array(H5Dcreate2(file_.get(), name.c_str(), element.stored, space.get(), links.get(),
                              properties.get(), H5P_DEFAULT));
  Check(array.valid());
  arrays_.emplace(name, std::move(array));
}

void Hdf5Appender::Append(const std::string& name, std::span<const int64_t> dims,
                          std::span<const float> values) {
  const Hdf5Lock lock;
  AppendAs(name, dims, {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, sizeof(float)}, values.size(),
           values.data());
}

void Hdf5Appender::Append(const std::string& name, std::span<const int64_t> dims,
                          std::span<const uint8_t> values) {
  const Hdf5Lock lock;
  AppendAs(name, dims, {H5T_STD_U8LE, H5T_NATIVE_UINT8, 1}, values.size(), values.data());
}

void Hdf5Appender::AppendAs(const std::string& name, std::span<const int64_t> dims,
                            const Element& element, size_t count, const void* values) {
  if (!arrays_.contains(name)) Make(name, dims, element);
  if (count == 0) return;
  const Hdf5Handle& array = arrays_.at(name);
  uint64_t& rows = rows_[name];
  std::vector<hsize_t> start(dims.size(), 0), size(dims.begin(), dims.end()), all = size;
  start[0] = rows;
  all[0] += rows;
  Check(H5Dset_extent(array.get(), all.data()) >= 0);
  const Hdf5Handle space(H5Dget_space(array.get()));
  const Hdf5Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr));
  Check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(),
                            nullptr) >= 0 &&
        H5Dwrite(array.get(), element.held, memory.get(), space.get(), H5P_DEFAULT, values) >= 0);
  rows = all[0];
}

void Hdf5Appender::Flush() {
  const Hdf5Lock lock;
  Check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0);
}

void Hdf5Appender::Close() {
  const Hdf5Lock lock;
  Flush();
  arrays_.clear();
  Check(file_.Close());
}

}  // namespace trainer
