#pragma once

#include <span>

#include "trainer/datasets/audit.h"

namespace trainer {

// Audits the list of an HDF5Data layer: the labels of its files, and whether the other numbers in
// their first and last rows are finite. `audit` has its source and batch size.
void AuditHdf5(const LayerSpec& layer, std::span<const int> label_tops, const AuditLimits& limits,
               DataAudit* audit);

}  // namespace trainer
