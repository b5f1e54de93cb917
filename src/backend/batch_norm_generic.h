#pragma once
// The passes of a batch normalisation over its tensors, written in the loops of any device.
//
// The cost is the memory traffic, not the arithmetic. So the number of passes is minimal, and the
// layers around it (Scale, a sum, ReLU) are computed in the same passes:
//   forward   1. read x: the sums of each channel          2. read x [and other], write y
//   backward  1. read dy and x: the sums of g and g * z    2. read dy and x, write dx
// Neither direction can do with one pass: the moments of the whole batch must be known before the
// first y, and both sums before the first dx.
//
// - In pass 1 the moments are computed from deviations from a chunk's first pixel, in one reading.
//   Computing the mean first and the squares afterwards would take two. Chunks are then joined in
//   double precision.
// - z, the normalised input, is not kept from forward: computing (x - mean) * inverse again is
//   cheaper than writing and reading z. If y = z, because the scale is 1 and nothing follows, x is
//   not needed, so the layer may work in place.
// - g is dy masked by the ReLU. Without `other` the mask is recomputed from x with exactly the
//   arithmetic of forward, so y is not read. With `other` the mask is read from y.
// - The gradient of `other` is g itself. Pass 1 writes it, and pass 2 reads it instead of dy and y,
//   which saves one array.

#include <utility>

#include "batch_norm_math.h"
#include "desc_checks.h"
#include "trainer/backend/primitives/batch_norm.h"

namespace trainer {

// Batch normalisation in as few passes over memory as possible, for any device. Loops runs functors
// over channels and pixels: see cpu/loops.h and cuda/pixel_loops.h.
template <class Loops>
class BatchNormPasses final : public BatchNormPrimitive {
 public:
  BatchNormPasses(const BatchNormDesc& desc, const Loops& loops)
      : desc_(desc), pixels_(loops.Chunks(desc.shape)), loops_(loops) {}

  void SetStatsAllReduce(std::function<void(float* means, int64_t count)> join) override {
    join_ = std::move(join);
  }
  std::string kernel() const override { return "passes over pixels"; }
  size_t WorkspaceBytes() const override { return BatchNormWorkspace(pixels_); }
  size_t ScratchBytes() const override { return BatchNormScratch(pixels_); }
  BatchNormStats StatsIn(std::span<std::byte> workspace) const override {
    auto* const mean = reinterpret_cast<float*>(workspace.data());
    return {mean, mean + Channels(), mean + 2 * Channels()};
  }

  // Runs the first pass of forward, in chunks whose moments are joined in double precision.
  void Moments(ConstTensor x, const BatchNormStats& at, std::span<std::byte> scratch) override {
    Expect(x);
    float* const sums = Sums(scratch);
    loops_.DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* in = x.As<T>();
      loops_.SumPairs(pixels_, Deviations<T>{in, in}, sums);
      using Join = typename Loops::template Moments<T>;
      loops_.JoinChunks(pixels_, Join{in, sums, pixels_, at.mean, at.inverse});
    });
  }

  // Computes 1 / sqrt(variance + eps) and `factor` per channel, then y.
  void Forward(const BatchNormTensors& in, const BatchNormStats& at) override {
    loops_.ForEach(Channels(), FactorOf{at.inverse, desc_.eps, {in.scale, in.shift}, at.factor});
    Recompute(in, at);
  }

  void Recompute(const BatchNormTensors& in, const BatchNormStats& at) override {
    Expect(in.x);
    Expect(in.y);
    if (desc_.other) Expect(in.other);
    loops_.DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      desc_.relu ? WriteOutput<T, true>(in, at) : WriteOutput<T, false>(in, at);
    });
  }

  // Chooses how both passes get g (masked by y, by x or not at all) and z (from x or from y).
  void Backward(const BatchNormGradients& in, const BatchNormStats& at,
                std::span<std::byte> scratch) override {
    Expect(in.dy);
    loops_.DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* dy = in.dy.As<T>();
      const Run<T> run = {in, at, Means(scratch), Sums(scratch)};
      if (desc_.relu && desc_.other)
        return BackwardWithOther(run, MaskedByOutput<T>{dy, in.y.As<T>()});
      if (desc_.other) return BackwardWithOther(run, PlainGradient<T>{dy});
      if (desc_.relu)
        return BackwardFromX(run, MaskedByInput<T>{dy, Normal<T>(in.x, in.shift, at)});
      if (!desc_.backward_from_output) return BackwardFromX(run, PlainGradient<T>{dy});
      const PlainGradient<T> g{dy};
      ComputeMeans(run, g, NormalFromOutput<T>{in.y.As<T>()});
      WriteInputGradient(run, g, NormalFromOutput<T>{in.y.As<T>()});
    });
  }

 private:
  // The operands of a backward pass. `means` holds mean_g, then mean_gz, per channel; `sums` holds
  // the sums of the chunks.
  template <class T>
  struct Run {
    const BatchNormGradients& in;
    const BatchNormStats& at;
    float *means, *sums;
  };

  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("batch normalisation", desc_.shape, desc_.dtype, tensor);
  }
  int64_t Channels() const { return pixels_.rows.length; }
  // Returns the first part of the scratch: two means per channel.
  static float* Means(std::span<std::byte> scratch) {
    return reinterpret_cast<float*>(scratch.data());
  }
  // Returns the rest of the scratch: the sums of the chunks.
  float* Sums(std::span<std::byte> scratch) const { return Means(scratch) + 2 * Channels(); }

  // Returns the functor that computes x * factor + shift around the mean: y without `other` and
  // ReLU.
  template <class T>
  static Normalize<T, false> Normal(const ConstTensor& x, const float* shift,
                                    const BatchNormStats& at) {
    return {x.As<T>(), at.mean, at.factor, shift};
  }
  // Returns the functor that computes z from x.
  template <class T>
  static NormalFromInput<T> ZFromX(const Run<T>& run) {
    return {run.in.x.template As<T>(), run.at.mean, run.at.inverse};
  }

  // Writes y: the second pass of forward.
  template <class T, bool kRelu>
  void WriteOutput(const BatchNormTensors& in, const BatchNormStats& at) const {
    const T* x = in.x.As<T>();
    T* y = in.y.As<T>();
    if (!desc_.other) {
      return loops_.MapPixels(pixels_, Normalize<T, kRelu>{x, at.mean, at.factor, in.shift}, y,
                              y != x);
    }
    const T* other = in.other.As<T>();
    loops_.MapPixels(pixels_, NormalizeAndAdd<T, kRelu>{Normal<T>(in.x, in.shift, at), other}, y,
                     y != x && y != other);
  }

  // Runs both passes of backward, with the given gradient g and with z computed from x.
  template <class T, class G>
  void BackwardFromX(const Run<T>& run, const G& g) const {
    ComputeMeans(run, g, ZFromX(run));
    WriteInputGradient(run, g, ZFromX(run));
  }

  // Runs both passes of backward if there is `other`. The first pass writes its gradient, which
  // then also serves as g in the second pass.
  template <class T, class G>
  void BackwardWithOther(const Run<T>& run, const G& g) const {
    T* const to = run.in.dother.template As<T>();
    if (to == nullptr) return BackwardFromX(run, g);
    const PlainGradient<T> written{to};
    if (!desc_.relu && to == run.in.dy.data) return BackwardFromX(run, written);
    if (!NeedsSums(run.in)) {
      loops_.MapPixels(pixels_, g, to, to != run.in.dy.data);
    } else {
      ComputeMeans(run, WrittenThrough<T, G>{g, to}, ZFromX(run));
    }
    WriteInputGradient(run, written, ZFromX(run));
  }

  // Returns whether the first pass of backward is needed: dx depends on its sums unless the moments
  // are stored, and the gradients of scale and shift are such sums.
  bool NeedsSums(const BatchNormGradients& in) const {
    return !desc_.stored || in.dscale != nullptr || in.dshift != nullptr;
  }

  // Runs the first pass of backward, if it is needed: computes the means of g and g * z, and adds
  // to the gradients of scale and shift.
  template <class T, class G, class Z>
  void ComputeMeans(const Run<T>& run, const G& g, const Z& z) const {
    if (!NeedsSums(run.in)) return;
    float *const mean_g = run.means, *const mean_gz = mean_g + Channels();
    loops_.SumPairs(pixels_, GradientSums<G, Z>{g, z}, run.sums);
    loops_.JoinChunks(
        pixels_, MeansOfChunks{run.sums, pixels_, mean_g, mean_gz, run.in.dshift, run.in.dscale});
    if (join_ && !desc_.stored && run.in.dx.data != nullptr) join_(mean_g, 2 * Channels());
  }

  // Runs the second pass of backward: writes dx, if it is requested.
  template <class T, class G, class Z>
  void WriteInputGradient(const Run<T>& run, const G& g, const Z& z) const {
    T* const dx = run.in.dx.template As<T>();
    if (dx == nullptr) return;
    const bool fresh = dx != run.in.dy.data;
    const float* const factor = run.at.factor;
    if (desc_.stored) return loops_.MapPixels(pixels_, ScaledGradient<G>{g, factor}, dx, fresh);
    loops_.MapPixels(pixels_, InputGradient<G, Z>{g, z, factor, run.means, run.means + Channels()},
                     dx, fresh);
  }

  BatchNormDesc desc_;
  PixelChunks pixels_;
  Loops loops_;
  std::function<void(float* means, int64_t count)> join_;
};

}  // namespace trainer
