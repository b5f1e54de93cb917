#pragma once
// Products of matrices in our own AVX2 loops, in blocks that fit the caches: Goto and van de Geijn,
// "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34:3, section 4. A block of A is
// packed for the second-level cache, a group of columns of B as well, and 16 rows of A stay in the
// first-level cache while they are multiplied by the columns of the group.

#include <cstdint>
#include <functional>
#include <span>

#include "cpu/group_product.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/tensor/dtype.h"

namespace trainer::cpu {

// A matrix in memory, of floats or bf16.
struct StoredMatrix {
  const void* data;
  DType dtype;
  int64_t step;  // numbers from one row to the next
  // Returns the place of a row in memory, in rows. Null if the rows are stored in order.
  std::function<int64_t(int64_t)> place = nullptr;
};

// Neighbouring rows, columns or products.
struct BlockRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Where a product is written.
struct ProductResult {
  float* c;                   // row-major
  bool accumulate = false;    // add to C instead of overwriting it
  float* row_sums = nullptr;  // (m), to which the sums of the rows of A are added, or null
};

// Computes C (m, n) = A (m, k) * B (k, n). A sum adds its products in an order that depends on k
// and, with `split_k`, on the number of threads.
class BlockedProduct {
 public:
  // The largest inner length of a block. With a longer one, C is read again for each block.
  static constexpr int64_t kDepth = 192;

  struct Sizes {
    int64_t m, n, k;
    bool trans_a = false;  // A is stored as (k, m)
    bool split_k = false;  // threads may share the sums of C; only for results that accumulate
  };

  explicit BlockedProduct(const Sizes& sizes);

  size_t ScratchBytes() const { return scratch_.Bytes(); }
  void Run(const StoredMatrix& a, const StoredMatrix& b, const ProductResult& result,
           std::span<std::byte> scratch) const;

 private:
  // A part of the product, computed by one thread.
  struct Task {
    BlockRange rows, columns, inner;
    float* c;
    const float* add;  // null for 0
    float* row_sums;
  };

  // Chooses how rows, columns and the inner length are divided among the threads.
  void Divide();
  Task TaskAt(int64_t index, const ProductResult& result, std::span<std::byte> scratch) const;
  // Computes a task. `left` and `right` are scratch.
  void RunTask(const Task& task, const StoredMatrix& a, const StoredMatrix& b, float* left,
               float* right) const;
  // Adds the sums of the parts of the inner length to C and to the row sums.
  void Join(const ProductResult& result, std::span<std::byte> scratch) const;

  Sizes sizes_;
  int threads_;
  int64_t row_parts_ = 1, column_parts_ = 1, inner_parts_ = 1;
  int64_t depth_ = 1;                   // the largest inner length of a block
  int64_t width_ = 1;                   // columns packed at a time
  int64_t left_floats_, right_floats_;  // packed blocks of a thread
  ScratchLayout scratch_;
  ScratchRegion<float> left_, right_, sums_, row_sums_;
};

}  // namespace trainer::cpu
