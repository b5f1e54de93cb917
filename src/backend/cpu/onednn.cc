#include "cpu/onednn.h"

#include <dnnl_debug.h>

#include <algorithm>
#include <array>

#include "cpu/ops.h"
#include "trainer/backend/memory/library_call.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer::onednn {
namespace {

// Returns the stream in which all primitives run. The process creates it at the first call, and all
// threads share it.
dnnl_stream_t SharedStream() {
  static const dnnl_stream_t stream = [] {
    dnnl_stream_t made = nullptr;
    Check(dnnl_stream_create(&made, Engine(), dnnl_stream_default_flags), "making a stream");
    return made;
  }();
  return stream;
}

// Makes the attributes of a primitive: scratch from the caller, and a post-operation.
Owner<dnnl_primitive_attr_t> MakeAttr(PostOp post) {
  dnnl_primitive_attr_t made = nullptr;
  Check(dnnl_primitive_attr_create(&made), "making attributes");
  Owner<dnnl_primitive_attr_t> attr(made);
  // The caller provides the scratch, so that a call allocates nothing.
  Check(dnnl_primitive_attr_set_scratchpad_mode(attr.get(), dnnl_scratchpad_mode_user),
        "setting the scratch mode");
  if (post != PostOp::kNone) {
    dnnl_post_ops_t ops_made = nullptr;
    Check(dnnl_post_ops_create(&ops_made), "making post-operations");
    const Owner<dnnl_post_ops_t> ops(ops_made);
    Check(post == PostOp::kAdd
              ? dnnl_post_ops_append_sum(ops.get(), 1.0f)
              : dnnl_post_ops_append_eltwise(ops.get(), 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f),
          "asking for a post-operation");
    Check(dnnl_primitive_attr_set_post_ops(attr.get(), ops.get()), "asking for a post-operation");
  }
  return attr;
}

// Describes a tensor in one of the library's named layouts.
dnnl_memory_desc_t WithTag(const Dims& dims, DType type, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t md;
  Check(dnnl_memory_desc_init_by_tag(&md, static_cast<int>(dims.size()), dims.data(), TypeOf(type),
                                     tag),
        "describing a tensor");
  return md;
}

// Returns whether oneDNN converts between these types in a reference loop. Its compiled copies of
// bf16 need AVX-512; without them ResNet-50 spends nine tenths of its time in copies.
bool ConvertsSlowly(dnnl_data_type_t user, dnnl_data_type_t library) {
  static const bool has_avx512 =
      (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  return !has_avx512 && user == dnnl_bf16 && library == dnnl_f32;
}

}  // namespace

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    Check(dnnl_engine_create(&made, dnnl_cpu, 0), "making the CPU engine");
    return made;
  }();
  return engine;
}

void Check(dnnl_status_t status, std::string_view call) {
  if (status == dnnl_success) return;
  const std::string message = Join("oneDNN: ", call, " failed: ", dnnl_status2str(status));
  if (status == dnnl_out_of_memory) throw Error(ErrorCode::kResource, message);
  if (status == dnnl_unimplemented) throw Error(ErrorCode::kUnavailable, message);
  throw Error(ErrorCode::kInternal, message);
}

dnnl_data_type_t TypeOf(DType type) {
  if (type == DType::kF16) RefuseF16();
  return type == DType::kF32 ? dnnl_f32 : dnnl_bf16;
}

dnnl_memory_desc_t Strided(const Dims& dims, const Dims& strides, DType type) {
  dnnl_memory_desc_t md;
  Check(dnnl_memory_desc_init_by_strides(&md, static_cast<int>(dims.size()), dims.data(),
                                         TypeOf(type), strides.data()),
        "describing a tensor");
  return md;
}

dnnl_memory_desc_t RowMajor(const Dims& dims, DType type) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return Strided(dims, strides, type);
}

dnnl_memory_desc_t ChannelsLast(const Dims& dims, DType type) {
  Dims strides(dims.size(), 1);
  int64_t step = dims[1];
  for (size_t i = dims.size() - 1; i > 1; --i) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return Strided(dims, strides, type);
}

// Leaves the layout to the library.
dnnl_memory_desc_t Any(const Dims& dims, DType type) {
  return WithTag(dims, type, dnnl_format_tag_any);
}

Choice::Choice(const_dnnl_op_desc_t op, bool tiles, PostOp post, const Choice* hint) {
  dnnl_primitive_desc_iterator_t made = nullptr;
  dnnl_status_t status = dnnl_primitive_desc_iterator_create(
      &made, op, MakeAttr(post).get(), Engine(), hint ? hint->get() : nullptr);
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) return;
  Check(status, "choosing an algorithm");
  const Owner<dnnl_primitive_desc_iterator_t> iterator(made);
  for (; status == dnnl_success; status = dnnl_primitive_desc_iterator_next(made)) {
    desc_.reset(dnnl_primitive_desc_iterator_fetch(made));
    if (tiles || Name().find("amx") == std::string::npos) return;
    desc_.reset();
  }
}

Choice::Choice(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, PostOp post) {
  dnnl_primitive_desc_t made = nullptr;
  Check(dnnl_reorder_primitive_desc_create(&made, &from, Engine(), &to, Engine(),
                                           MakeAttr(post).get()),
        "choosing a copy between layouts");
  desc_.reset(made);
}

dnnl_memory_desc_t Choice::Md(dnnl_query_t role) const {
  return *dnnl_primitive_desc_query_md(desc_.get(), role, 0);
}

std::string Choice::Name() const {
  const char* name = nullptr;
  Check(dnnl_primitive_desc_query(desc_.get(), dnnl_query_impl_info_str, 0, &name),
        "asking for an algorithm's name");
  // A convolution run as an inner product loses the second half of its name when it is copied.
  const std::string text = name;
  return text.starts_with("ip:") ? "ip" : text;
}

Primitive::Primitive(const Choice& choice) {
  dnnl_primitive_t made = nullptr;
  Check(dnnl_primitive_create(&made, choice.get()), "compiling an algorithm");
  primitive_.reset(made);
  const dnnl_memory_desc_t scratch = choice.Md(dnnl_query_scratchpad_md);
  scratch_bytes_ = AlignedBytes(dnnl_memory_desc_get_size(&scratch));
  if (scratch_bytes_ > 0) Declare(DNNL_ARG_SCRATCHPAD, scratch);
}

void Primitive::Declare(int arg, const dnnl_memory_desc_t& md) {
  dnnl_memory_t made = nullptr;
  Check(dnnl_memory_create(&made, &md, Engine(), DNNL_MEMORY_NONE), "declaring an argument");
  memory_.emplace_back(made);
  args_.push_back({arg, made});
  at_.push_back(nullptr);
}

void Primitive::SetAddress(int arg, const void* at) {
  for (size_t i = 0; i < args_.size(); ++i) {
    if (args_[i].arg != arg) continue;
    // Setting a handle may write the padding of a blocked layout, so it is skipped if the address
    // has not changed.
    if (at_[i] == at) return;
    Check(dnnl_memory_set_data_handle_v2(args_[i].memory, const_cast<void*>(at), SharedStream()),
          "setting an argument");
    at_[i] = at;
    return;
  }
  throw Error(ErrorCode::kInternal, Join("oneDNN argument ", arg, " was not declared"));
}

void Primitive::Run(std::span<const Data> data, std::byte* scratch) {
  const InLibraryCall mark;
  for (const Data& item : data) SetAddress(item.arg, item.at);
  if (scratch_bytes_ > 0) SetAddress(DNNL_ARG_SCRATCHPAD, scratch);
  Check(dnnl_primitive_execute(primitive_.get(), SharedStream(), static_cast<int>(args_.size()),
                               args_.data()),
        "running an algorithm");
}

void Operation::In(int arg, const dnnl_memory_desc_t& user, const dnnl_memory_desc_t& library) {
  primitive_.Declare(arg, library);
  if (!dnnl_memory_desc_equal(&user, &library)) AddCopy(arg, false, false, user, library);
  work_bytes_ = std::max(work_bytes_, primitive_.ScratchBytes());
}

void Operation::Out(int arg, const dnnl_memory_desc_t& user, const dnnl_memory_desc_t& library,
                    bool add) {
  primitive_.Declare(arg, library);
  if (add || !dnnl_memory_desc_equal(&user, &library)) AddCopy(arg, true, add, user, library);
  work_bytes_ = std::max(work_bytes_, primitive_.ScratchBytes());
}

void Operation::AddCopy(int arg, bool out, bool add, const dnnl_memory_desc_t& user,
                        const dnnl_memory_desc_t& library) {
  Copy copy{.arg = arg, .out = out, .offset = copies_bytes_};
  copies_bytes_ += AlignedBytes(dnnl_memory_desc_get_size(&library));
  dnnl_memory_desc_t ours = user;
  if (!add && ConvertsSlowly(user.data_type, library.data_type)) {
    ours.data_type = dnnl_f32;
    copy.floats.emplace(Tensor{
        nullptr, Shape(std::span<const int64_t>(user.dims, static_cast<size_t>(user.ndims)))});
    copy.floats_offset = copy.offset;
  }
  if (add || !dnnl_memory_desc_equal(&ours, &library)) {
    if (copy.floats) {
      copy.floats_offset = copies_bytes_;
      copies_bytes_ += AlignedBytes(dnnl_memory_desc_get_size(&ours));
    }
    const dnnl_memory_desc_t& from = out ? library : ours;
    const dnnl_memory_desc_t& to = out ? ours : library;
    copy.primitive =
        std::make_unique<Primitive>(Choice(from, to, add ? PostOp::kAdd : PostOp::kNone));
    copy.primitive->Declare(DNNL_ARG_FROM, from);
    copy.primitive->Declare(DNNL_ARG_TO, to);
    work_bytes_ = std::max(work_bytes_, copy.primitive->ScratchBytes());
  }
  copies_.push_back(std::move(copy));
}

void Operation::RunCopy(Copy& copy, const void* user, std::byte* scratch) {
  const void* const library = scratch + copy.offset;
  const void* ours = user;
  ConstTensor stored;
  if (copy.floats) {
    copy.floats->data = scratch + copy.floats_offset;
    ours = copy.floats->data;
    stored = ConstTensor(user, copy.floats->shape, DType::kBF16);
    if (!copy.out) cpu::Convert(stored, *copy.floats);
  }
  if (copy.primitive) {
    const Data ends[] = {{DNNL_ARG_FROM, copy.out ? library : ours},
                         {DNNL_ARG_TO, copy.out ? ours : library}};
    copy.primitive->Run(ends, scratch + copies_bytes_);
  }
  if (copy.floats && copy.out) {
    cpu::Convert(*copy.floats, Tensor{const_cast<void*>(user), stored.shape, stored.dtype});
  }
}

void Operation::Run(std::span<const Data> data, std::span<std::byte> scratch) {
  if (scratch.size() < ScratchBytes() || data.size() > kMaxArgs) {
    throw Error(ErrorCode::kInternal, Join("oneDNN ", name_, " needs ", ScratchBytes(),
                                           " bytes of scratch and got ", scratch.size()));
  }
  std::array<Data, kMaxArgs> inside{};
  std::copy(data.begin(), data.end(), inside.begin());
  for (Copy& copy : copies_) {
    for (size_t i = 0; i < data.size(); ++i) {
      if (data[i].arg != copy.arg) continue;
      if (!copy.out && data[i].at != nullptr) RunCopy(copy, data[i].at, scratch.data());
      inside[i].at = scratch.data() + copy.offset;
    }
  }
  primitive_.Run(std::span(inside.data(), data.size()), scratch.data() + copies_bytes_);
  for (Copy& copy : copies_) {
    for (const Data& item : data) {
      if (!copy.out || item.arg != copy.arg || item.at == nullptr) continue;
      RunCopy(copy, item.at, scratch.data());
    }
  }
}

}  // namespace trainer::onednn
