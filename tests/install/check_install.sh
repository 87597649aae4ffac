#!/bin/sh
# Installs a build, moves the installed tree elsewhere, and builds the first
# example against it in the three ways a user may: CMake, pkg-config, static.
#
#   check_install.sh SOURCE_DIR BUILD_DIR SCRATCH_DIR LIBDIR
set -eu
source=$1 build=$2 scratch=$3 libdir=$4

rm -rf "$scratch"
mkdir -p "$scratch"
cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log"
mv "$scratch/first" "$scratch/moved"
prefix=$scratch/moved
cd "$scratch"

headers=$(ls "$prefix/include")
[ "$headers" = "$(ls "$source/include")" ] || { echo "installed headers: $headers"; exit 1; }

# The licences of what C-Blosc2 and the library contain.
if [ -e "$prefix/$libdir/caterva/libblosc2.a" ]; then
    for text in "$source"/python/licenses/*.txt; do
        name=$(basename "$text")
        case $name in JANSSON.txt | LIBPNG.txt) continue ;; esac
        cmp "$text" "$prefix/share/doc/caterva/LICENSE.$name"
    done
fi

# Nothing that the caller's environment says may be needed to run the tool.
if [ -x "$prefix/bin/caterva" ]; then
    env -i "$prefix/bin/caterva" --version
fi

expect="item (40, 3, 5) is 4006"
check() { # name command...
    name=$1
    shift
    "$@" >"$name.out" || { echo "$name: exit status $?"; exit 1; }
    grep -qF "$expect" "$name.out" || { echo "$name printed:"; cat "$name.out"; exit 1; }
    echo "$name: $(cat "$name.out")"
}

example=$source/examples/01-first-array
cmake -S "$example" -B by-cmake -DCMAKE_PREFIX_PATH="$prefix" >cmake.log
cmake --build by-cmake >>cmake.log
check cmake by-cmake/first-array

# The static target beside the shared one.
sed 's/Caterva::caterva)/Caterva::caterva_static)/' "$example/CMakeLists.txt" >CMakeLists.txt
cp "$example/main.c" main.c
cmake -S . -B by-cmake-static -DCMAKE_PREFIX_PATH="$prefix" >>cmake.log
cmake --build by-cmake-static >>cmake.log
check cmake-static by-cmake-static/first-array

# The other examples; what they print, their pages show (test_sessions.py).
for other in "$source"/examples/0[2-9]*; do
    name=$(basename "$other")
    [ "$name" = 09-mpi ] && continue
    cmake -S "$other" -B "by-cmake-$name" -DCMAKE_PREFIX_PATH="$prefix" >>cmake.log
    cmake --build "by-cmake-$name" >>cmake.log
done

# The one with MPI, by four processes; scripts/bootstrap --python brings an MPI, too.
PATH=$PATH:$source/build/python-venv/bin
if command -v mpicc >mpi.log && command -v mpiexec >>mpi.log; then
    cmake -S "$source/examples/09-mpi" -B by-cmake-mpi -DCMAKE_PREFIX_PATH="$prefix" >>cmake.log
    cmake --build by-cmake-mpi >>cmake.log
    expect="0 of 700000 items are wrong"
    # What Open MPI wants before it starts four processes, as root, on two cores.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        OMPI_MCA_rmaps_base_oversubscribe=1
    check mpi mpiexec -n 4 by-cmake-mpi/mpi-writers mpi.b2nd
else
    echo "examples/09-mpi was not built: there is no mpicc and mpiexec here"
fi

# Libraries that stand nowhere special are found with the caller's help only.
export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
blosc2_dir=$(pkg-config --variable=libdir blosc2 2>/dev/null || true)
${CC:-cc} main.c $(pkg-config --cflags --libs caterva) -o by-pkg-config
expect="item (40, 3, 5) is 4006"
check pkg-config env LD_LIBRARY_PATH="$prefix/$libdir" ./by-pkg-config

${CC:-cc} main.c $(pkg-config --cflags caterva) "$prefix/$libdir/libcaterva.a" \
    $(pkg-config --static --libs caterva | sed 's/-lcaterva//') -o by-pkg-config-static
check pkg-config-static env LD_LIBRARY_PATH="$blosc2_dir" ./by-pkg-config-static
