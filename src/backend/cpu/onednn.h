#pragma once
// All of oneDNN that we use: its objects as owners, its status codes as Error, and calls that
// allocate nothing on our side. The C interface, because the C++ one builds an argument map in
// every call.
//
// One thread at a time uses a primitive. Engine and stream live as long as the process.

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

dnnl_engine_t Engine();

// Throws unless `status` is success: kResource when memory ran out, kUnavailable when this library
// cannot do it, else kInternal; `call` names what failed.
void Check(dnnl_status_t status, std::string_view call);

dnnl_data_type_t TypeOf(DType type);

// Memory descriptors. Dims are logical: (N, C, spatial...) or (G, M/G, C/G, kernel...).
using Dims = std::vector<int64_t>;
dnnl_memory_desc_t RowMajor(const Dims& dims, DType type);
dnnl_memory_desc_t Strided(const Dims& dims, const Dims& strides, DType type);
dnnl_memory_desc_t ChannelsLast(const Dims& dims, DType type);
dnnl_memory_desc_t Any(const Dims& dims, DType type);  // the library chooses

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

// What happens to a result before it is stored: it is added to what is there, or made 0 where it is
// negative.
enum class PostOp { kNone, kAdd, kRelu };

// An algorithm chosen for an operation, not yet compiled. Null when the library has none.
class Choice {
 public:
  // The library's first; without `tiles` its first that uses no tile registers (AMX). `hint` is the
  // forward choice of a backward one.
  Choice(const_dnnl_op_desc_t op, bool tiles, PostOp post = PostOp::kNone,
         const Choice* hint = nullptr);
  // A copy between layouts or types.
  Choice(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, PostOp post);

  explicit operator bool() const { return desc_ != nullptr; }
  const_dnnl_primitive_desc_t get() const { return desc_.get(); }
  // The descriptor of an argument by role, e.g. dnnl_query_src_md.
  dnnl_memory_desc_t Md(dnnl_query_t role) const;
  // "brgconv:avx512_core"
  std::string Name() const;

 private:
  Owner<dnnl_primitive_desc_t> desc_;
};

// The number of an argument (DNNL_ARG_SRC) and where its data are.
struct Data {
  int arg;
  const void* at;
};

// A compiled algorithm with its arguments declared.
class Primitive {
 public:
  explicit Primitive(const Choice& choice);
  // Declares an argument before the first Run.
  void Declare(int arg, const dnnl_memory_desc_t& md);
  size_t ScratchBytes() const { return scratch_bytes_; }
  // `data` names declared arguments only; `scratch` is at least ScratchBytes(), aligned to 64.
  void Run(std::span<const Data> data, std::byte* scratch);

 private:
  void Point(int arg, const void* at);

  Owner<dnnl_primitive_t> primitive_;
  std::vector<Owner<dnnl_memory_t>> memory_;
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<const void*> at_;
  size_t scratch_bytes_ = 0;
};

// A primitive whose arguments the caller holds in layouts or types of his own: copies them to and
// from the library's through scratch where they differ.
class Operation {
 public:
  explicit Operation(const Choice& choice) : primitive_(choice), name_(choice.Name()) {}

  void In(int arg, const dnnl_memory_desc_t& user, const dnnl_memory_desc_t& library);
  // `add`: the result is added to what is there. A null pointer in Run drops such an output.
  void Out(int arg, const dnnl_memory_desc_t& user, const dnnl_memory_desc_t& library,
           bool add = false);

  const std::string& Name() const { return name_; }
  size_t ScratchBytes() const { return copies_bytes_ + work_bytes_; }
  // `data` in the order of the In and Out calls. Throws kInternal when `scratch` is too small.
  void Run(std::span<const Data> data, std::span<std::byte> scratch);

 private:
  struct Copy {
    int arg;
    bool out;
    size_t offset;  // of the library's tensor in the scratch
    // Set where our loops convert the user's tensor between 16 bits and floats: the floats are in
    // the user's layout, at `floats_offset` in the scratch.
    std::optional<Tensor> floats = {};
    size_t floats_offset = 0;
    std::unique_ptr<Primitive> primitive = {};  // null: the library takes those floats as they are
  };
  void AddCopy(int arg, bool out, bool add, const dnnl_memory_desc_t& user,
               const dnnl_memory_desc_t& library);
  void RunCopy(Copy& copy, const void* user, std::byte* scratch);
  void RunCopies(bool out, std::span<const Data> data, std::byte* scratch);

  static constexpr size_t kMaxArgs = 6;
  Primitive primitive_;
  std::string name_;
  std::vector<Copy> copies_;
  size_t copies_bytes_ = 0, work_bytes_ = 0;
};

}  // namespace trainer::onednn
