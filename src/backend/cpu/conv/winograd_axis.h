#pragma once
// The transforms of winograd.h along one axis and along both, on vectors V (simd.h).

#include "cpu/simd.h"

namespace trainer::cpu {

// The N points are 0, p and -p for each p of kPairs, and infinity. Let N(t) be t times the product
// of all (t^2 - p^2). Row p of B^T holds the coefficients of N(t) / (t - p), and its row for
// infinity the coefficients of N(t). Row p of A and of G holds the powers of p, and the row for
// infinity only a 1 at the end. G's rows are divided by N'(p).
template <int N>
struct Points;
template <>
struct Points<6> {
  static constexpr float kPairs[] = {0.625f, 1.5f};
};
template <>
struct Points<8> {
  static constexpr float kPairs[] = {0.5f, 1, 2};
};

// The coefficients of these matrices that depend on the points.
template <int N>
struct Factors {
  static constexpr int kPairs = N / 2 - 1;
  // coefficients of powers of t^2 in the product of all (t^2 - p^2)
  float all[kPairs + 1] = {1};
  float others[kPairs][kPairs]{};  // coefficients without pair i
  float scales[N]{};               // 1 / N'(point)

  constexpr Factors() {
    scales[N - 1] = 1;
    for (int i = 0; i < kPairs; ++i) Grow(all, i, Square(i));
    scales[0] = 1 / all[0];
    for (int i = 0; i < kPairs; ++i) {
      others[i][0] = 1;
      float slope = 2 * Square(i);
      for (int j = 0, degree = 0; j < kPairs; ++j) {
        if (j == i) continue;
        Grow(others[i], degree++, Square(j));
        slope *= Square(i) - Square(j);
      }
      scales[1 + 2 * i] = scales[2 + 2 * i] = 1 / slope;
    }
  }

 private:
  static constexpr float Square(int i) { return Points<N>::kPairs[i] * Points<N>::kPairs[i]; }
  // Multiplies a polynomial of this degree in u = t^2 by (u - square).
  static constexpr void Grow(float* polynomial, int degree, float square) {
    for (int k = degree + 1; k > 0; --k) {
      polynomial[k] = polynomial[k - 1] - square * (k <= degree ? polynomial[k] : 0);
    }
    polynomial[0] *= -square;
  }
};
template <int N>
constexpr Factors<N> kFactors;

// Returns a * x + y in `to`. All vectors F are passed by reference (simd.h).
template <class F>
TRAINER_INLINE void MulAdd(F& to, float a, const F& x, const F& y) {
  to = a * x + y;
}

// Computes to = the sum over k < D of factors[k] x[2 k], plus x[2 D], whose factor is 1.
template <int D, class F>
TRAINER_INLINE void Polynomial(F& to, const float* factors, const F* x) {
  to = x[2 * D];
#pragma GCC unroll 4
  for (int k = D - 1; k >= 0; --k) MulAdd(to, factors[k], x[2 * k], to);
}

// Computes out = B^T in, for N inputs of a patch along one axis.
template <int N>
struct FromPatch {
  static constexpr int kIn = N, kOut = N, kPairs = N / 2 - 1;
  template <class V, class F = typename V::F>
  static TRAINER_INLINE void Apply(const F (&in)[N], F (&out)[N]) {
    Polynomial<kPairs>(out[0], kFactors<N>.all, in);
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const float* others = kFactors<N>.others[i];
      F even, odd;
      Polynomial<kPairs - 1>(even, others, in + 2);
      Polynomial<kPairs - 1>(odd, others, in + 1);
      const float p = Points<N>::kPairs[i];
      MulAdd(out[1 + 2 * i], p, odd, even);
      MulAdd(out[2 + 2 * i], -p, odd, even);
    }
    Polynomial<kPairs>(out[N - 1], kFactors<N>.all, in + 1);
  }
};

// Evaluates a polynomial at the N points: out = A in, where `in` has its K coefficients, the lowest
// power first. The even and the odd powers are summed once for each pair p and -p; the value at
// infinity is the highest coefficient.
template <int N, int K>
struct Evaluate {
  static constexpr int kIn = K, kOut = N;
  template <class V, class F = typename V::F>
  static TRAINER_INLINE void Apply(const F (&in)[K], F (&out)[N]) {
    out[0] = in[0];
#pragma GCC unroll 4
    for (int i = 0; i < N / 2 - 1; ++i) {
      const float p = Points<N>::kPairs[i];
      F even = in[(K - 1) / 2 * 2], odd = in[K / 2 * 2 - 1];
#pragma GCC unroll 4
      for (int k = (K - 1) / 2 * 2 - 2; k >= 0; k -= 2) MulAdd(even, p * p, even, in[k]);
#pragma GCC unroll 4
      for (int k = K / 2 * 2 - 3; k > 0; k -= 2) MulAdd(odd, p * p, odd, in[k]);
      MulAdd(out[1 + 2 * i], p, odd, even);
      MulAdd(out[2 + 2 * i], -p, odd, even);
    }
    out[N - 1] = in[K - 1];
  }
};

// Computes out = A^T in for K elements: each is a sum of the values at the points times a power of
// the point.
template <int N, int K>
struct Interpolate {
  static constexpr int kIn = N, kOut = K;
  template <class V, class F = typename V::F>
  static TRAINER_INLINE void Apply(const F (&in)[N], F (&out)[K]) {
    out[0] = in[0] + in[1] + in[2];
#pragma GCC unroll 4
    for (int i = 0; i < N / 2 - 1; ++i) {
      const F even = in[1 + 2 * i] + in[2 + 2 * i], odd = in[1 + 2 * i] - in[2 + 2 * i];
      if (i > 0) out[0] += even;
      float power = 1;
#pragma GCC unroll 5
      for (int k = 1; k < K; ++k) {
        power *= Points<N>::kPairs[i];
        const F part = k % 2 == 0 ? even : odd;
        if (i == 0) {
          out[k] = power * part;
          V::KeepProduct(out[k]);  // the next pair's product is the fused one
        } else {
          MulAdd(out[k], power, part, out[k]);
        }
      }
    }
    out[K - 1] += in[N - 1];
  }
};

// Applies the transform along both axes. `load(i, j, to)` and `store(i, j, from)` are inlined.
template <class V, class Axis, class LoadAt, class StoreAt>
TRAINER_INLINE void Apply2d(LoadAt load, StoreAt store) {
  using F = typename V::F;
  F half[Axis::kIn][Axis::kOut];
  for (int i = 0; i < Axis::kIn; ++i) {
    F in[Axis::kIn];
#pragma GCC unroll 8
    for (int j = 0; j < Axis::kIn; ++j) load(i, j, in[j]);
    Axis::template Apply<V>(in, half[i]);
  }
  for (int j = 0; j < Axis::kOut; ++j) {
    F in[Axis::kIn], out[Axis::kOut];
#pragma GCC unroll 8
    for (int i = 0; i < Axis::kIn; ++i) in[i] = half[i][j];
    Axis::template Apply<V>(in, out);
#pragma GCC unroll 8
    for (int i = 0; i < Axis::kOut; ++i) store(i, j, out[i]);
  }
}

}  // namespace trainer::cpu
