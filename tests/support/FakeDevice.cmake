# A program that starts real workers of the fake device: gpurest_fake_device_unit(pool SOURCES ... FOLDERS pool ipc base)
include(${PROJECT_SOURCE_DIR}/tests/support/plain/Plain.cmake)
function(gpurest_fake_device_unit name)
  gpurest_threaded_unit(${name} ${ARGN})
  target_sources(unit_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fake_script.c)
  target_compile_definitions(unit_${name} PRIVATE FAKE_WORKER="$<TARGET_FILE:fake_worker>")
  add_dependencies(unit_${name} fake_worker)
endfunction()

# The same with sessions on them.
function(gpurest_fake_pool_unit name)
  gpurest_fake_device_unit(${name} ${ARGN})
  target_sources(unit_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fake_pool.c ${PROJECT_SOURCE_DIR}/tests/support/fake_compile.c)
  foreach(function spawn_kill spawn_reap pool_take pool_take_ready compile_service_version compile_service_identity compile_service_run
                   compile_service_waiting)
    target_link_options(unit_${name} PRIVATE -Wl,--wrap=${function})
  endforeach()
endfunction()
