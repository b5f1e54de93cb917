#pragma once

#include "trainer/datasets/audit.h"

namespace trainer {

// Audits the list of an ImageData layer: its labels, whether its files exist, and whether a sample
// of them decodes. `audit` has its source and batch size.
void AuditImages(const LayerSpec& layer, caffe::Phase phase, const AuditLimits& limits,
                 DataAudit* audit);
// Does the same for the list of a WindowData layer.
void AuditWindows(const LayerSpec& layer, const AuditLimits& limits, DataAudit* audit);

}  // namespace trainer
