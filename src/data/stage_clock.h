#pragma once
// The clock that the stages of reading ahead are measured with.

namespace trainer {

// Seconds since some moment.
double StageNow();
// Tests put a clock of their own in its place; null: the real one.
void SetStageClock(double (*now)());

}  // namespace trainer
