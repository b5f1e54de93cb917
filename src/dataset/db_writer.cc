#include "trainer/dataset/db_writer.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {

std::unique_ptr<DbWriter> CreateDb(const std::string& backend, const std::string& path) {
  const DbWriterRegistry& registry = DbWriterRegistry::Get();
  if (!registry.Has(backend)) {
    throw Error(ErrorCode::kUsage, Join("unknown database backend '", EscapeControl(backend),
                                        "'; known: ", JoinList(registry.Names())));
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    const int error = errno;
    throw Error(ErrorCode::kCannotCreate, {path},
                error == EEXIST ? std::string("exists already and is not overwritten; remove it or "
                                              "choose another name")
                                : Join("cannot make the folder: ", std::strerror(error)));
  }
  return registry.Make(backend, path);
}

}  // namespace trainer
