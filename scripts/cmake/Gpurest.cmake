# Flags and functions that every folder uses.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd>=0.9.75)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson>=1.7.15)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum -Wformat=2
                    -Wwrite-strings -Wundef -Werror -fno-common -fno-strict-aliasing)
# Asserts stay on in every build: they are few and cheap.
add_compile_options(-UNDEBUG)
if(GPUREST_SANITIZE)
  add_compile_options(-fsanitize=${GPUREST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GPUREST_SANITIZE})
  if(GPUREST_SANITIZE MATCHES address)
    # UBSan's tables have 300,000 addresses, which every start of a process would relocate. The place is one that no offset of a kernel's memory
    # reaches, which tests tell from addresses of the process.
    add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie;-Wl,-Ttext-segment=0x60000000>")
  endif()
  if(NOT GPUREST_FUZZ)
    # Halves the compile time. Reports need line numbers, and ASan recommends -O1; the warning needs the value ranges of -O2, which plain
    # builds use.
    add_compile_options(-O1 -g1 -Wno-format-truncation)
  endif()
else()
  add_compile_options(-fstack-protector-strong)
  add_compile_definitions($<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()

# One folder of service/: an OBJECT library gpurest_<name> with an explicit list of sources.
function(gpurest_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(gpurest_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(gpurest_${name} PUBLIC ${PROJECT_SOURCE_DIR}/service)
  target_link_libraries(gpurest_${name} PUBLIC ${ARG_LIBS})
endfunction()

# These take the longest, so ctest starts them first.
set(GPUREST_LONGEST_UNITS session device device_cpu_reference device_cpu_random compile pool)

# A Criterion program: gpurest_unit(http_json SOURCES json_test.c FOLDERS http base LIBS PkgConfig::NETTLE)
function(gpurest_unit name)
  cmake_parse_arguments(ARG "" "" "SOURCES;FOLDERS;LIBS" ${ARGN})
  add_executable(unit_${name} ${ARG_SOURCES})
  target_include_directories(unit_${name} PRIVATE ${PROJECT_SOURCE_DIR}/service ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(unit_${name} PRIVATE -Wno-missing-prototypes)
  foreach(folder ${ARG_FOLDERS})
    target_link_libraries(unit_${name} PRIVATE gpurest_${folder})
  endforeach()
  target_link_libraries(unit_${name} PRIVATE ${ARG_LIBS} PkgConfig::CRITERION Threads::Threads ${CMAKE_DL_LIBS} m)
  add_test(NAME unit_${name} COMMAND unit_${name} --jobs 2 --verbose)
  if(name IN_LIST GPUREST_LONGEST_UNITS)
    set_tests_properties(unit_${name} PROPERTIES COST 100)
  endif()
endfunction()

# Programs of which a build with ASan runs less, or other code: fewer cases, one interpreter instead of those for each instruction set, a
# jail with more system calls. `make test` runs these in the plain build, too, and all others under ASan alone.
function(gpurest_plain)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS plain)
endfunction()

# Programs that also run under ThreadSanitizer; the target threaded_tests builds all of them: gpurest_threaded(unit_pool)
add_custom_target(threaded_tests)
function(gpurest_threaded)
  set_tests_properties(${ARGN} PROPERTIES LABELS threads)
  add_dependencies(threaded_tests ${ARGN})
endfunction()
