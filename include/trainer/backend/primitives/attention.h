#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/backend/primitives/primitive.h"

namespace trainer {

// Attention of sequences to themselves, in several heads:
//   out_i = sum over j of softmax_j(q_i . k_j / sqrt(size)) * v_j  for each item and head,
// over all positions j of the sequence, or with `causal` over j <= i. All operands are f32.
// Shapes, row-major: qkv (batch, length, 3, heads, size), with q, k and v in this order; out
// (batch, length, heads, size); log_sums (batch, heads, length), the logarithm of the sum of exp of
// each row of scores.
struct AttentionDesc {
  int64_t batch = 0, length = 0, heads = 0, size = 0;
  bool causal = false;

  int64_t Channels() const { return heads * size; }
  int64_t LogSums() const { return batch * heads * length; }
  float Scale() const { return 1 / std::sqrt(static_cast<float>(size)); }
  // Returns the multiply-adds of one forward pass; Backward takes 2.5 times as many.
  int64_t Macs() const { return 2 * batch * length * length * Channels() / (causal ? 2 : 1); }
};

// The arrays that Backward reads: the operands and results of Forward, and the gradient of `out`.
struct AttentionSaved {
  const float *qkv, *out, *log_sums, *dout;
};

// Made by Device::NewAttention; used by one thread at a time. Never stores the length x length
// scores: Forward keeps a running maximum and sum per row while it visits blocks of keys, and
// Backward computes the scores of a block again from `log_sums`. Memory is therefore linear in the
// length. Sums are added in an order that depends only on the shape, so they repeat bit for bit.
// Source: Dao et al., arXiv:2205.14135; the running softmax: Milakov and Gimelshein,
// arXiv:1805.02867.
class AttentionPrimitive : public Primitive {
 public:
  virtual size_t ScratchBytes() const = 0;  // the maximum over the two calls
  // Writes `out` and `log_sums`.
  virtual void Forward(const float* qkv, float* out, float* log_sums,
                       std::span<std::byte> scratch) = 0;
  // Overwrites dqkv with the gradient of qkv.
  virtual void Backward(const AttentionSaved& in, float* dqkv, std::span<std::byte> scratch) = 0;
};

}  // namespace trainer
