#pragma once

namespace trainer {

class Error;

// Sources made after this call skip at most `most` bad records per epoch, counted over all ranks,
// and replace each with the next good one. With -1, as at first, a bad record ends reading. One
// setting of the process, because it belongs to the run and not to a net's file.
void SetMaxBadRecords(int most);
int MaxBadRecords();

// Whether a decoder's error concerns only one record: its bytes, its size or its file.
bool IsOfOneRecord(const Error& error);

}  // namespace trainer
