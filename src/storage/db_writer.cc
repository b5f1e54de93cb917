#include "trainer/storage/db_writer.h"

#include <sys/stat.h>

#include <cerrno>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file_ops.h"
#include "trainer/base/text/text.h"

namespace trainer {

std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path) {
  const DbWriterRegistry& registry = DbWriterRegistry::Get();
  if (!registry.Has(backend)) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(backend),
                                        "'; known: ", JoinList(registry.Names())));
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    const int error = errno;
    if (error != EEXIST) ThrowFileError(FileUse::kOutput, "create the folder", path, error);
    throw Error(
        ErrorCode::kCannotCreate, {path},
        "the folder already exists and is not overwritten; remove it or choose another name");
  }
  return registry.Make(backend, path);
}

}  // namespace trainer
