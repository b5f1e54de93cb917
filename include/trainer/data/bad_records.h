#pragma once
// What becomes of records that cannot be decoded.

namespace trainer {

class Error;

// From here on the sources that are made skip so many bad records in an epoch, those of all
// replicas together, and put the next good record in the place of each; -1, as at first: a bad
// record ends the reading. One answer for the whole process, as it is one of a run and not of a
// net's file; called before nets are made.
void SkipBadRecords(int most);
int MostBadRecords();

// Whether an error of a decoder is about the one record: its bytes, its size, its file.
bool IsOfOneRecord(const Error& error);

}  // namespace trainer
