#pragma once
// The data of the nets of a preflight check.

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "check_nets.h"
#include "trainer/datasets/audit.h"

namespace trainer {

// The audit of one data layer. The data are read before the nets are built, because the nets keep
// databases open, and reported afterwards.
struct LayerAudit {
  size_t net = 0;  // index into the nets
  std::string layer;
  std::vector<LabelReader> readers;
  DataAudit data;
};

// Audits the data layers of all nets. Adds an error for each file that cannot be opened.
std::vector<LayerAudit> AuditNets(const std::vector<PreflightNet>& nets, const PlannedNets& planned,
                                  Diagnostics* diagnostics);

// Reports the audits. Returns the indices of the nets whose data have an error.
std::set<size_t> ReportDataAudits(const std::vector<PreflightNet>& nets,
                                  const std::vector<LayerAudit>& audits, PreflightReport* report);

}  // namespace trainer
