// SPDX-License-Identifier: Apache-2.0
//
// A shared object that is no plugin.
extern "C" __attribute__((visibility("default"))) int orrery_not_a_plugin() { return 1; }
