// Parsed once for all unit tests; see orrery.cmake.
#pragma once
#include "pch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
