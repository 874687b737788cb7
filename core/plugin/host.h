// SPDX-License-Identifier: Apache-2.0
//
// The services that the core gives to plugins (the table host/1), and the conversion between the
// statuses of the plugin interface and exceptions.
#pragma once

#include <orrery/host.h>

#include "base/error.h"

namespace orrery {

const orr_host& host_table();

// Throws the status as an Error and releases it; does nothing for NULL.
void check(orr_status* status);
// The same with "prefix: " in front of the message.
void check(orr_status* status, const std::string& prefix);

// Runs body(). An exception that it throws becomes a status.
template <class Body>
orr_status* guarded(Body&& body) {
  try {
    body();
    return nullptr;
  } catch (const Error& e) {
    return host_table().error(e.code(), e.what());
  } catch (const std::exception& e) {
    return host_table().error(ORR_FAILED, e.what());
  }
}

}  // namespace orrery
