#include "trainer/storage/db_writer.h"

#include <sys/stat.h>

#include <cerrno>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/format.h"

namespace trainer {

std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path) {
  const Format* const format = FindFormat(backend);
  if (format == nullptr || format->create == nullptr) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(backend),
                                        "'; known: LEVELDB, LMDB"));
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    const int error = errno;
    if (error != EEXIST) ThrowFileError(FileUse::kOutput, "create the folder", path, error);
    throw Error(
        ErrorCode::kCannotCreate, {path},
        "the folder already exists and is not overwritten; remove it or choose another name");
  }
  return format->create(path);
}

}  // namespace trainer
