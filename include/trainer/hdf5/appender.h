#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "trainer/hdf5/handle.h"

namespace trainer {

class DiskFile;

enum class Hdf5Creation {
  kReplace,  // in place of an older file
  kNew,      // kCannotCreate when anything of that name is there
};

// A new HDF5 file with datasets of floats or bytes that grow along their first axis; whole after
// each Flush. One thread. Errors: as ThrowFileError, kInternal for the library.
class Hdf5Appender {
 public:
  // Makes the file. Messages call it `shown`, or `path` where that is "".
  explicit Hdf5Appender(const std::string& path, const std::string& shown = "",
                        Hdf5Creation creation = Hdf5Creation::kReplace);
  ~Hdf5Appender();

  // Adds dims[0] rows to dataset `name`, which the first call makes. The other lengths must be the
  // same in each call. `values` is row-major. A name with slashes is in groups, which are made.
  void Append(const std::string& name, std::span<const int64_t> dims,
              std::span<const float> values);
  void Append(const std::string& name, std::span<const int64_t> dims,
              std::span<const uint8_t> values);
  void Flush();
  // Flushes and closes the file. The destructor does the same but tells no error.
  void Close();

 private:
  // An element as the library calls it, in the file and in memory.
  struct Element {
    int64_t stored, held;
    size_t bytes;
  };
  void AppendAs(const std::string& name, std::span<const int64_t> dims, const Element& element,
                size_t count, const void* values);
  void Make(const std::string& name, std::span<const int64_t> dims, const Element& element);
  void Check(bool done) const;

  std::string path_;  // as messages call it
  std::unique_ptr<DiskFile> storage_;
  Hdf5Handle file_;
  std::map<std::string, Hdf5Handle> arrays_;
  std::map<std::string, uint64_t> rows_;
};

}  // namespace trainer
