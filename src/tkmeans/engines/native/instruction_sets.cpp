#include "instruction_sets.hpp"

#if defined(TKM_X86) && defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace tkmeans {

namespace {

bool always() { return true; }

#if defined(TKM_X86) && defined(_MSC_VER)

bool bit(int leaf, int register_, int position) {
    int values[4];
    __cpuidex(values, leaf, 0);
    return (values[register_] >> position) & 1;
}

// Does the operating system save these registers when it switches threads?
bool saved(unsigned long long registers) { return bit(1, 2, 27) && (_xgetbv(0) & registers) == registers; }

bool runs_v3() {
    return saved(0x6) && bit(1, 2, 12) /* FMA */ && bit(7, 1, 5) /* AVX2 */ && bit(7, 1, 3) /* BMI1 */ &&
           bit(7, 1, 8) /* BMI2 */;
}

bool runs_v4() {
    return runs_v3() && saved(0xe6) && bit(7, 1, 16) /* F */ && bit(7, 1, 17) /* DQ */ && bit(7, 1, 28) /* CD */ &&
           bit(7, 1, 30) /* BW */ && bit(7, 1, 31) /* VL */;
}

#elif defined(TKM_X86)

bool runs_v3() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

bool runs_v4() {
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

#endif

}  // namespace

#if defined(TKM_X86)

namespace v2 { extern const Engine engine; }
namespace v3 { extern const Engine engine; }
namespace v4 { extern const Engine engine; }

extern const InstructionSet instruction_sets[] = {
    {"x86-64-v2", &v2::engine, always},
    {"x86-64-v3", &v3::engine, runs_v3},
    {"x86-64-v4", &v4::engine, runs_v4},
};
extern const int n_instruction_sets = 3;

#else

namespace baseline { extern const Engine engine; }

extern const InstructionSet instruction_sets[] = {{"baseline", &baseline::engine, always}};
extern const int n_instruction_sets = 1;

#endif

}  // namespace tkmeans
