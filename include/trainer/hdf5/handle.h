#pragma once

#include <cstdint>
#include <utility>

namespace trainer {

// A handle of the HDF5 library that closes itself. Negative: none.
class Hdf5Handle {
 public:
  explicit Hdf5Handle(int64_t id = -1) : id_(id) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() { Close(); }

  int64_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  // False when the library reports a failure. Closing twice is allowed.
  bool Close();

 private:
  int64_t id_;
};

}  // namespace trainer
