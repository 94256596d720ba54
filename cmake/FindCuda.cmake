# Sets FATHOM_CUDA: whether the CUDA module is built. It is built where nvcc is found, unless
# disabled; a build without it says so in one line and is complete except for `--device cuda`.
#
# By default the module supports compute capability 8.0 and later: with a GPU in this machine it is
# compiled for that alone; without one for 9.0 (sm_90a) in machine code, and as PTX of 8.0 that the
# driver translates on 8.x, 10.0, 12.0 and later. Kernels that only Hopper has are always sm_90a.
find_program(NVIDIA_SMI nvidia-smi)
set(fathom_cuda_default "80-virtual;90a-real")
if(NVIDIA_SMI)
  execute_process(COMMAND ${NVIDIA_SMI} -L OUTPUT_VARIABLE fathom_gpus RESULT_VARIABLE fathom_no_gpu
    ERROR_QUIET)
  if(fathom_no_gpu EQUAL 0 AND fathom_gpus MATCHES "GPU 0")
    set(fathom_cuda_default native)
  endif()
endif()
set(FATHOM_CUDA_ARCHITECTURES ${fathom_cuda_default} CACHE STRING
  "GPU architectures of the CUDA module, as CMake writes them")
option(FATHOM_WITHOUT_CUDA "Leave the CUDA module out even where nvcc is" OFF)

set(FATHOM_CUDA OFF)
include(CheckLanguage)
if(NOT FATHOM_WITHOUT_CUDA AND NOT FATHOM_SANITIZE)
  check_language(CUDA)
endif()
if(CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_ARCHITECTURES ${FATHOM_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  enable_language(CUDA)
  # CMake 3.25 does not know C++20 for nvcc and would silently fall back to C++17.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  if(CCACHE_PROGRAM)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(FATHOM_CUDA ON)
else()
  message(STATUS "nvcc not found or not wanted: no CUDA module, everything else is built")
endif()
