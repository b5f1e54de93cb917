#pragma once
// The clock that measures reading, decoding and transforming.

namespace trainer {

// Seconds since an arbitrary time.
double InputNow();
// Replaces the clock in tests; null: the real one.
void SetInputClock(double (*now)());

}  // namespace trainer
