#pragma once
// The policy for records that cannot be decoded.

namespace trainer {

class Error;

// Sources made from here on skip at most so many bad records per epoch, counted over all ranks, and
// put the next good record in the place of each. With -1, the value at the start, a bad record ends
// reading. This is one setting of the whole process, because it belongs to the run and not to a
// net's file. Call it before nets are made.
void SetMaxBadRecords(int most);
int MaxBadRecords();

// Whether a decoder's error concerns only one record: its bytes, its size, its file.
bool IsOfOneRecord(const Error& error);

}  // namespace trainer
