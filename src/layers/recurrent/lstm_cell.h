#pragma once
// One step of an LSTM: c = cont * f * c_prev + i * g; h = o * tanh(c). For each sequence, gates and
// their activations hold H numbers each of i, f, o (logistic) and g (tanh), in this order.

#include "trainer/backend/loops/map_rows.h"
#include "trainer/backend/loops/math.h"

namespace trainer {

// Computes the step forward from the gates' inputs `gates`: the activated gates, c and h. Row n is
// sequence n; cont[n] is the factor on its previous state. `active` may be `gates`.
struct LstmCell {
  const float *gates, *c_prev, *cont;
  float *active, *c, *h;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t width = row.length, at = row.index * width, gate = 4 * at;
    const float keep = cont[row.index];
    row.ForEach([&](int64_t j) {
      const int64_t k = gate + j;
      const float in = Logistic(gates[k]), forget = Logistic(gates[k + width]);
      const float out = Logistic(gates[k + 2 * width]), value = Tanh(gates[k + 3 * width]);
      const float next = keep * forget * c_prev[at + j] + in * value;
      active[k] = in;
      active[k + width] = forget;
      active[k + 2 * width] = out;
      active[k + 3 * width] = value;
      c[at + j] = next;
      h[at + j] = out * Tanh(next);
    });
  }
};

// Computes the gradients of one step. The gradient of h is dh + dh_more; null dh, dh_more and dc
// count as zeros. dc_prev may be dc or dh_more; null dgates or dc_prev are not computed.
struct LstmCellGradient {
  const float *active, *c_prev, *c, *cont, *dh, *dh_more, *dc;
  float *dgates, *dc_prev;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t width = row.length, at = row.index * width, gate = 4 * at;
    const float keep = cont[row.index];
    row.ForEach([&](int64_t j) {
      const int64_t k = gate + j;
      const float in = active[k], forget = active[k + width];
      const float out = active[k + 2 * width], value = active[k + 3 * width];
      const float squashed = Tanh(c[at + j]);
      const float d_h =
          (dh == nullptr ? 0.0f : dh[at + j]) + (dh_more == nullptr ? 0.0f : dh_more[at + j]);
      const float d_c = (dc == nullptr ? 0.0f : dc[at + j]) + d_h * out * (1 - squashed * squashed);
      const float before = c_prev[at + j];
      if (dc_prev != nullptr) dc_prev[at + j] = d_c * keep * forget;
      if (dgates == nullptr) return;
      dgates[k] = d_c * value * in * (1 - in);
      dgates[k + width] = d_c * before * keep * forget * (1 - forget);
      dgates[k + 2 * width] = d_h * squashed * out * (1 - out);
      dgates[k + 3 * width] = d_c * in * (1 - value * value);
    });
  }
};

}  // namespace trainer
