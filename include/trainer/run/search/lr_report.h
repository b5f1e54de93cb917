#pragma once
// The results of a learning rate range test as text, table and chart.

#include <string>

#include "trainer/base/text/json.h"
#include "trainer/run/search/lr_range_test.h"

namespace trainer {

// Returns a table of some points, which include those of the advice.
std::string LrTable(const LrRangeResult& result);
// Returns one or two sentences: the learning rate to train with, or why there is none.
std::string LrAdvice(const LrRangeResult& result);
// Returns the table and the advice, in lines that fit the terminal.
std::string ToText(const LrRangeResult& result);
// Returns a table with a line for each iteration: learning rate, loss and smoothed loss.
std::string ToCsv(const LrRangeResult& result);
// Returns a chart of the losses over a logarithmic axis of learning rates.
std::string ToSvg(const LrRangeResult& result);
Json ToJson(const LrRangeResult& result);

}  // namespace trainer
