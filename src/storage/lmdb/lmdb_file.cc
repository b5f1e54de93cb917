#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "lmdb/lmdb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {

void FailLmdb(const std::string& path, const std::string& what, int rc) {
  if (rc == EACCES || rc == EPERM) {
    throw Error(ErrorCode::kNoPermission, {path}, Join(what, ": ", mdb_strerror(rc)));
  }
  if (rc == MDB_VERSION_MISMATCH) {
    throw Error(ErrorCode::kData, {path},
                "the database was written by another LMDB version, and LMDB 0.9 cannot read its "
                "format; convert it: run mdb_dump of that version, then mdb_load of version 0.9");
  }
  if (rc == MDB_READERS_FULL) {
    throw Error(ErrorCode::kIo, {path},
                "126 readers already have the database open, which is the limit; stop one, or "
                "remove lock.mdb when no reader is running");
  }
  if (rc == ENOMEM) {
    throw Error(ErrorCode::kResource, {path},
                Join(what,
                     ": out of memory: the database is mapped into the address space as a "
                     "whole; raise its limit (ulimit -v)"));
  }
  // LMDB's own numbers are negative; it gives EINVAL for damage, too.
  const bool is_of_the_system = rc > 0 && rc != EINVAL;
  throw Error(is_of_the_system ? ErrorCode::kIo : ErrorCode::kData, {path},
              Join(what, ": ", mdb_strerror(rc)));
}

namespace {

// The start of a meta page in the format of LMDB 0.9 on 64-bit machines of this byte order.
struct MetaPage {
  char page_header[16];
  uint32_t magic, version;
  uint64_t address, map_bytes;
  uint32_t page_bytes;
};

// A writer may have asked for far more than the file has, such as Caffe's 1 TiB.
constexpr uint64_t kMostMapBytes = uint64_t{1} << 46;

// Checks both meta pages with plain reads. LMDB trusts them: a zero page size divides by zero.
void CheckMetaPages(const std::string& path, int fd, int64_t file_bytes) {
  uint64_t offset = 0;
  for (int i = 0; i < 2; ++i) {
    MetaPage meta{};
    const ssize_t got = FileOps::Posix().Pread(fd, &meta, sizeof meta, offset);
    if (got < 0) FailLmdb(path, "cannot read data.mdb", errno);
    if (got < static_cast<ssize_t>(sizeof meta)) {
      throw Error(ErrorCode::kData, {path},
                  Join("data.mdb is truncated: its ", file_bytes,
                       " bytes are too short for an LMDB header; copy the database again"));
    }
    if (meta.magic != 0xBEEFC0DE) {
      throw Error(ErrorCode::kData, {path},
                  i == 0 ? "data.mdb is not an LMDB file (wrong first bytes)"
                         : "data.mdb is damaged: its second header is not LMDB's");
    }
    if (meta.version != 1) FailLmdb(path, "", MDB_VERSION_MISMATCH);
    const uint32_t psize = meta.page_bytes;
    if (psize < 256 || psize > 65536 || (psize & (psize - 1)) != 0 || (i == 1 && psize != offset)) {
      throw Error(ErrorCode::kData, {path},
                  Join("data.mdb is damaged: its header says pages of ", psize, " bytes"));
    }
    if (meta.map_bytes > kMostMapBytes) {
      throw Error(
          ErrorCode::kData, {path},
          Join("data.mdb is damaged: its header says a map of ", meta.map_bytes,
               " bytes, which exceeds the address space of a process; copy the database again"));
    }
    offset = psize;
  }
}

}  // namespace

void CheckLmdbFile(const std::string& path) {
  FileOps& ops = FileOps::Posix();
  const FileHandle file(ops, ops.Open(path + "/data.mdb", O_RDONLY | O_NONBLOCK, 0));
  if (file.get() < 0) FailLmdb(path, "cannot open data.mdb", errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0) FailLmdb(path, "cannot read data.mdb", errno);
  if (!S_ISREG(info.st_mode)) throw Error(ErrorCode::kData, {path}, "data.mdb is not a file");
  if (info.st_size == 0) {
    throw Error(
        ErrorCode::kData, {path},
        "data.mdb has 0 bytes: the program that wrote the database did not finish; make it again");
  }
  CheckMetaPages(path, file.get(), info.st_size);
}

}  // namespace trainer
