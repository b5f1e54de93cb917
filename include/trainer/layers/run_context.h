#pragma once
// The arguments of a layer's passes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/backend/device/input_error.h"
#include "trainer/base/random/philox.h"
#include "trainer/config/layer_spec.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// The number of the current forward pass, and its options. A net has one PassInfo, and all its
// contexts point to it: a host passes nothing else to a kernel that differs between iterations.
struct PassInfo {
  uint32_t value = 0;
  // The virtual rank that the pass computes, if this net computes several of them one after the
  // other (NetOptions::virtual_ranks), and the number that makes the random numbers of each rank
  // different.
  int virtual_rank = 0;
  uint64_t rank_rng_salt = 0;
  bool is_reevaluation = false;   // repeats the previous pass on the same batch
  uint32_t* on_device = nullptr;  // the same number as `value`, for kernels
};

// The data of a step when it runs: addresses and shapes, fixed for the whole run. Forward, Backward
// and Recompute of a step have one each. Nothing here allocates.
class RunContext {
 public:
  const Device& device() const { return *device_; }
  caffe::Phase phase() const { return phase_; }

  const ConstTensor& Input(int i) const { return in_[i]; }
  const Tensor& Output(int i) const { return out_[i]; }

  // Gradients exist only in Backward.
  const ConstTensor& GradOutput(int i) const { return grad_out_[i]; }
  // Returns GradOutput(i) as memory that Backward may overwrite. Only a layer with fused layers may
  // call it.
  Tensor MutableGradOutput(int i) const {
    return {const_cast<void*>(grad_out_[i].data), grad_out_[i].shape, grad_out_[i].dtype};
  }
  // Returns the gradient that Backward must overwrite. Valid only if NeedsGradInput(i).
  const Tensor& GradInput(int i) const { return grad_in_[i]; }
  bool NeedsGradInput(int i) const { return grad_in_[i].data != nullptr; }
  // Whether a loss depends on output i; if not, GradOutput(i).data is null.
  bool HasGradOutput(int i) const { return grad_out_[i].data != nullptr; }

  int NumInputs() const { return static_cast<int>(in_.size()); }
  int NumOutputs() const { return static_cast<int>(out_.size()); }

  // Parameters are f32. GradParam(i) is null if it is not needed; Backward adds to it.
  float* Param(int i) const { return param_[i]; }
  // Returns Param(i), or null if the layer has no parameter i, e.g. no bias.
  float* ParamOrNull(int i) const {
    return i < static_cast<int>(param_.size()) ? param_[i] : nullptr;
  }
  float* GradParam(int i) const { return grad_param_[i]; }
  // Returns GradParam(i), or null also if the layer has no parameter i.
  float* GradParamOrNull(int i) const {
    return i < static_cast<int>(grad_param_.size()) ? grad_param_[i] : nullptr;
  }

  // The memory that SetupContext and PrepareContext requested under these names. Forward and
  // Backward have different scratch memory.
  std::span<std::byte> Scratch() const { return scratch_; }
  std::span<std::byte> Workspace() const { return workspace_; }
  std::span<std::byte> State() const { return state_; }
  std::span<std::byte> UploadMemory() const { return upload_memory_; }
  const float* Constants() const { return constants_; }

  // Sets the shape, in this pass, of an output that was declared by OutputIsDynamic; Forward calls
  // it before it writes. Layers that depend on the output repeat Setup and Prepare for that shape;
  // layers that depend on an empty one are skipped. Throws kInternal for an output that was not
  // declared so.
  void Resize(int i, const Shape& shape) const;

  // The context of the k-th layer that is fused into this one: its parameters and random stream.
  const RunContext& Epilogue(int k) const { return *fused_[k]; }

  // A kernel of Forward reports an invalid element of an input here. The net then calls
  // ThrowInputError: on the CPU after Forward, on an asynchronous device when it reads the loss.
  // Until then Backward and later layers process such elements, too, and must not access memory out
  // of bounds.
  InputErrorFlag input_error() const { return InputErrorFlag(fault_); }

  // Returns the layer's random stream, which differs between replicas and virtual ranks.
  PhiloxKey rng_key() const { return {key_.seed ^ pass_->rank_rng_salt, key_.stream}; }
  // The virtual rank of this pass: see NetOptions::virtual_ranks.
  int virtual_rank() const { return pass_->virtual_rank; }
  // Returns the number of this forward pass since training began; Backward sees its forward's
  // number.
  uint32_t pass() const { return pass_->value; }
  // Returns the address on the device of that number. Kernels read it there, because a captured
  // pass has the same arguments in each replay.
  const uint32_t* pass_counter() const { return pass_->on_device; }
  // Whether this forward pass repeats the one before it on the same batch. It must then not change
  // anything that outlives a pass: running averages, files.
  bool is_reevaluation() const { return pass_->is_reevaluation; }

 private:
  friend class Bindings;
  friend class DynamicShapes;
  const Device* device_ = nullptr;
  caffe::Phase phase_ = caffe::TEST;
  std::vector<ConstTensor> in_, grad_out_;
  std::vector<Tensor> out_, grad_in_;
  std::vector<float*> param_, grad_param_;
  std::span<std::byte> scratch_, workspace_, state_, upload_memory_;
  const float* constants_ = nullptr;
  std::vector<const RunContext*> fused_;
  uint64_t* fault_ = nullptr;
  PhiloxKey key_;
  const PassInfo* pass_ = nullptr;
  RunContext* resizable_ = nullptr;  // this context, if an output may shrink
};

}  // namespace trainer
