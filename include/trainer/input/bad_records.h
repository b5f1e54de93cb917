#pragma once

namespace trainer {

class Error;

// Sources that are made after this call skip at most `most` bad records per epoch, counted over all
// ranks, and replace each with the next good record. With -1, the initial value, a bad record ends
// reading. This is one setting of the whole process, because it belongs to the run and not to a
// net's file. Call it before nets are made.
void SetMaxBadRecords(int most);
int MaxBadRecords();

// Whether a decoder's error concerns only one record: its bytes, its size or its file.
bool IsOfOneRecord(const Error& error);

}  // namespace trainer
