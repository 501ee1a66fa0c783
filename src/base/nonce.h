// A name that no other job has.
#pragma once

#include <string>

namespace lockstep {

// 32 hexadecimal digits of the kernel's random numbers. Throws SystemError.
std::string random_nonce();

}  // namespace lockstep
