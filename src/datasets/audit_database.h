#pragma once

#include "trainer/datasets/audit.h"

namespace trainer {

// Audits the database of a Data layer: the shapes, values and labels of its records. `audit` has
// its source and batch size.
void AuditDatabase(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits,
                   DataAudit* audit);

}  // namespace trainer
