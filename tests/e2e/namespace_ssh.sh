#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# namespace_shell.py for launchers that want one word for the shell that reaches a host.
exec "$ORRERY_TEST_PYTHON" "${0%/*}/namespace_shell.py" "$ORRERY_TEST_TAG" "$@"
