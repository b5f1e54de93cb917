#pragma once
// Declares the importers of the operators, which are grouped into files by subject.

#include <map>
#include <string>

#include "import/net_builder.h"

namespace trainer {

// Adds the layers of one node.
using NodeImporter = void (*)(NetBuilder& net, const ImportNode& node);
using NodeImporters = std::map<std::string, NodeImporter>;

// Add the operators of one file to the table.
void AddConvImporters(NodeImporters* all);
void AddPoolImporters(NodeImporters* all);
void AddMatrixImporters(NodeImporters* all);
void AddActivationImporters(NodeImporters* all);
void AddArithmeticImporters(NodeImporters* all);
void AddNormImporters(NodeImporters* all);
void AddShapeImporters(NodeImporters* all);
void AddSelectImporters(NodeImporters* all);
void AddResizeImporters(NodeImporters* all);
void AddReduceImporters(NodeImporters* all);
void AddRecurrentImporters(NodeImporters* all);

}  // namespace trainer
