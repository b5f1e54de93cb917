#include "vfd.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "library_lock.h"

namespace trainer {
namespace {

// The library's own record of an open file comes first, as in each of its drivers.
struct OpenStorage {
  H5FD_t base = {};
  VfdFile* storage = nullptr;
  haddr_t end = 0;  // memory that the library uses
};

OpenStorage* Of(H5FD_t* file) { return reinterpret_cast<OpenStorage*>(file); }
const OpenStorage* Of(const H5FD_t* file) { return reinterpret_cast<const OpenStorage*>(file); }

H5FD_t* OpenFile(const char*, unsigned, hid_t access, haddr_t) {
  const void* info = H5Pget_driver_info(access);
  if (info == nullptr) return nullptr;
  auto* file = new OpenStorage;
  file->storage = *static_cast<VfdFile* const*>(info);
  return &file->base;
}

herr_t CloseFile(H5FD_t* file) {
  delete Of(file);
  return 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t EndOfUse(const H5FD_t* file, H5FD_mem_t) { return Of(file)->end; }

herr_t SetEndOfUse(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  Of(file)->end = end;
  return 0;
}

haddr_t EndOfFile(const H5FD_t* file, H5FD_mem_t) { return Of(file)->storage->Size(); }

herr_t ReadFile(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t bytes, void* to) {
  return Of(file)->storage->Read(at, bytes, to) ? 0 : -1;
}

herr_t WriteFile(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t bytes, const void* from) {
  Of(file)->storage->Write(at, bytes, from);
  return 0;
}

herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
  VfdFile& storage = *Of(file)->storage;
  if (storage.Size() != Of(file)->end) storage.Resize(Of(file)->end);
  return 0;
}

hid_t Driver() {
  static const H5FD_class_t kDriver = [] {
    H5FD_class_t driver = {};
#ifdef H5FD_CLASS_VERSION  // from HDF5 1.14 on
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(513);
#endif
    driver.name = "trainer";
    driver.maxaddr = HADDR_MAX / 4;  // offsets of a file are signed
    driver.fc_degree = H5F_CLOSE_STRONG;
    driver.fapl_size = sizeof(VfdFile*);
    driver.open = OpenFile;
    driver.close = CloseFile;
    driver.query = Query;
    driver.get_eoa = EndOfUse;
    driver.set_eoa = SetEndOfUse;
    driver.get_eof = EndOfFile;
    driver.read = ReadFile;
    driver.write = WriteFile;
    driver.truncate = Truncate;
    const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(kinds), std::end(kinds), driver.fl_map);
    return driver;
  }();
  static const hid_t id = H5FDregister(&kDriver);
  return id;
}

}  // namespace

DiskFile::DiskFile(FileHandle file) : file_(std::move(file)) {
  struct stat info {};
  if (fstat(file_.get(), &info) != 0) {
    error_ = errno;
  } else {
    size_ = static_cast<uint64_t>(info.st_size);
  }
}

bool DiskFile::Read(uint64_t at, size_t bytes, void* to) {
  auto* next = static_cast<char*>(to);
  if (at >= size_) {  // a damaged file can point anywhere
    std::memset(next, 0, bytes);
    return true;
  }
  while (bytes > 0) {
    const ssize_t got = FileOps::Posix().Pread(file_.get(), next, bytes, at);
    if (got < 0) {
      if (error_ == 0) error_ = errno;
      return false;
    }
    if (got == 0) {
      std::memset(next, 0, bytes);
      return true;
    }
    next += got;
    at += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void DiskFile::Write(uint64_t at, size_t bytes, const void* from) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0 && error_ == 0) {
    const ssize_t wrote = pwrite(file_.get(), next, bytes, static_cast<off_t>(at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      error_ = wrote < 0 ? errno : ENOSPC;
      return;
    }
    next += wrote;
    at += static_cast<uint64_t>(wrote);
    bytes -= static_cast<size_t>(wrote);
    size_ = std::max(size_, at);
  }
}

void DiskFile::Resize(uint64_t bytes) {
  if (error_ == 0 && ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) error_ = errno;
  if (error_ == 0) size_ = bytes;
}

bool SparseFile::Read(uint64_t at, size_t bytes, void* to) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const uint64_t offset = at % kPageBytes;
    const size_t piece = std::min<size_t>(bytes, kPageBytes - offset);
    const auto page = pages_.find(at / kPageBytes);
    if (page == pages_.end()) {
      std::memset(next, 0, piece);
    } else {
      std::memcpy(next, page->second.data() + offset, piece);
    }
    next += piece;
    at += piece;
    bytes -= piece;
  }
  return true;
}

void SparseFile::Write(uint64_t at, size_t bytes, const void* from) {
  const auto* next = static_cast<const char*>(from);
  size_ = std::max(size_, at + bytes);
  while (bytes > 0) {
    const uint64_t offset = at % kPageBytes;
    const size_t piece = std::min<size_t>(bytes, kPageBytes - offset);
    std::memcpy(pages_[at / kPageBytes].data() + offset, next, piece);
    next += piece;
    at += piece;
    bytes -= piece;
  }
}

Hdf5Handle MakeFileAccess(VfdFile& storage, const std::string& path) {
  const Hdf5Lock lock;
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
  VfdFile* const pointer = &storage;
  if (!access.valid() || H5Pset_driver(access.get(), Driver(), &pointer) < 0 ||
      H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG) < 0) {
    ThrowHdf5(ErrorCode::kInternal, path, "cannot prepare the file", "please report it");
  }
  return access;
}

}  // namespace trainer
