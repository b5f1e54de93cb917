#pragma once
// Pieces of a page.

#include <google/protobuf/struct.pb.h>

#include <string>
#include <vector>

#include "trainer/monitor/history.h"

namespace trainer {

// A field of JSON; null where it is missing.
const google::protobuf::Value* Field(const google::protobuf::Struct& json, const std::string& name);
// The same as a number and as text; 0 and "" where it is missing.
double Number(const google::protobuf::Struct& json, const std::string& name);
std::string Text(const google::protobuf::Struct& json, const std::string& name);

// With as many digits as a float has.
std::string Plain(double value);

// On narrow screens a table scrolls sideways; a `stacked` one becomes a list of its cells, each
// with the name of its column.
std::string TableHtml(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows, bool stacked = false);

// `png` in base 64, the caption in lines.
std::string FigureHtml(const std::string& png, const std::vector<std::string>& caption);
// A picture of the run's folder; "" where it is missing.
std::string PictureOfRun(const RunHistory& run, const char* file, const std::string& caption);

}  // namespace trainer
