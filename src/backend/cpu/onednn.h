#pragma once
// The part of oneDNN that we use: owners for its objects, status codes converted to Error, and
// calls that allocate nothing on our side. It uses the C interface, because the C++ interface
// builds an argument map in every call.
//
// A primitive is used by one thread at a time. Engine and stream live as long as the process.

#include <dnnl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "trainer/tensor/dtype.h"
#include "trainer/tensor/tensor.h"

namespace trainer::onednn {

// Returns the CPU engine, which is created at the first call.
dnnl_engine_t Engine();

// Throws unless `status` is success: kResource if memory ran out, kUnavailable if this library does
// not support the operation, else kInternal. `call` names the failed operation.
void Check(dnnl_status_t status, std::string_view call);

// Returns the library's value for a type. Throws kInternal for f16.
dnnl_data_type_t TypeOf(DType type);

// Make memory descriptors. Dims are logical: (N, C, spatial...) or (G, M/G, C/G, kernel...).
using Dims = std::vector<int64_t>;
dnnl_memory_desc_t RowMajor(const Dims& dims, DType type);
// Makes one with the distance of neighbours along each axis, in elements.
dnnl_memory_desc_t Strided(const Dims& dims, const Dims& strides, DType type);
// Makes one of an (N, C, spatial...) tensor that is stored as (N, spatial..., C).
dnnl_memory_desc_t ChannelsLast(const Dims& dims, DType type);
// Makes one whose layout the library chooses.
dnnl_memory_desc_t Any(const Dims& dims, DType type);

struct Destroy {
  void operator()(dnnl_primitive_desc_t desc) const { dnnl_primitive_desc_destroy(desc); }
  void operator()(dnnl_primitive_desc_iterator_t iterator) const {
    dnnl_primitive_desc_iterator_destroy(iterator);
  }
  void operator()(dnnl_primitive_t primitive) const { dnnl_primitive_destroy(primitive); }
  void operator()(dnnl_memory_t memory) const { dnnl_memory_destroy(memory); }
  void operator()(dnnl_primitive_attr_t attr) const { dnnl_primitive_attr_destroy(attr); }
  void operator()(dnnl_post_ops_t ops) const { dnnl_post_ops_destroy(ops); }
};
template <class Handle>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

// The operation on a result before it is stored: add it to the existing values, or set negative
// values to 0.
enum class PostOp { kNone, kAdd, kRelu };

// An algorithm chosen for an operation but not yet compiled. Null if the library has none.
class Choice {
 public:
  // Takes the library's first algorithm, or, without `tiles`, its first one that uses no tile
  // registers (AMX). A backward operation passes its forward choice as `hint`.
  Choice(const_dnnl_op_desc_t op, bool tiles, PostOp post = PostOp::kNone,
         const Choice* hint = nullptr);
  // Describes a copy between layouts or types.
  Choice(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, PostOp post);

  explicit operator bool() const { return desc_ != nullptr; }
  const_dnnl_primitive_desc_t get() const { return desc_.get(); }
  // Returns the descriptor of an argument by role, e.g. dnnl_query_src_md.
  dnnl_memory_desc_t Md(dnnl_query_t role) const;
  // Returns the implementation's name: "brgconv:avx512_core".
  std::string Name() const;

 private:
  Owner<dnnl_primitive_desc_t> desc_;
};

// The number of an argument (DNNL_ARG_SRC) and the address of its data.
struct Data {
  int arg;
  const void* at;
};

// A compiled algorithm and its declared arguments.
class Primitive {
 public:
  explicit Primitive(const Choice& choice);
  // Declares an argument before the first Run.
  void Declare(int arg, const dnnl_memory_desc_t& md);
  size_t ScratchBytes() const { return scratch_bytes_; }
  // `data` names declared arguments only; `scratch` is at least ScratchBytes(), aligned to 64.
  void Run(std::span<const Data> data, std::byte* scratch);

 private:
  // Sets the address of an argument's data. Throws kInternal if it was not declared.
  void SetAddress(int arg, const void* at);

  Owner<dnnl_primitive_t> primitive_;
  std::vector<Owner<dnnl_memory_t>> memory_;
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<const void*> at_;
  size_t scratch_bytes_ = 0;
};

// A primitive whose arguments may have other layouts or types in the caller's memory. They are
// copied through scratch where they differ from the library's.
class Operation {
 public:
  explicit Operation(const Choice& choice) : primitive_(choice), name_(choice.Name()) {}

  // Declares an input: its descriptor in the caller's memory and the one that the library wants.
  void In(int arg, const dnnl_memory_desc_t& user, const dnnl_memory_desc_t& library);
  // Declares an output. `add`: the result is added to the existing values. A null pointer in Run
  // skips such an output.
  void Out(int arg, const dnnl_memory_desc_t& user, const dnnl_memory_desc_t& library,
           bool add = false);

  const std::string& Name() const { return name_; }
  size_t ScratchBytes() const { return copies_bytes_ + work_bytes_; }
  // `data` must be in the order of the In and Out calls. Throws kInternal if `scratch` is too
  // small.
  void Run(std::span<const Data> data, std::span<std::byte> scratch);

 private:
  struct Copy {
    int arg;
    bool out;
    size_t offset;  // offset of the library's tensor in the scratch
    // Set if our own loops convert the user's tensor between 16 bits and floats. The floats have
    // the user's layout and are at `floats_offset` in the scratch.
    std::optional<Tensor> floats = {};
    size_t floats_offset = 0;
    std::unique_ptr<Primitive> primitive = {};  // null: the library reads the floats directly
  };
  // Plans the copy of an argument between the caller's memory and the scratch: by the library, by
  // our own conversion where the library's is slow, or by both one after the other.
  void AddCopy(int arg, bool out, bool add, const dnnl_memory_desc_t& user,
               const dnnl_memory_desc_t& library);
  // Copies one argument in or out. `user` is its address in the caller's memory.
  void RunCopy(Copy& copy, const void* user, std::byte* scratch);

  static constexpr size_t kMaxArgs = 6;
  Primitive primitive_;
  std::string name_;
  std::vector<Copy> copies_;
  size_t copies_bytes_ = 0, work_bytes_ = 0;
};

}  // namespace trainer::onednn
